"""Sources of sessions become landed files: one package a source, and the collector that they share."""
