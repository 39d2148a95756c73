"""The units of work, one package per capability."""
