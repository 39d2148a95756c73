"""Prefect flows, one module each, and the command line."""
