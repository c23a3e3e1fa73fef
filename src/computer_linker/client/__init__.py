"""The Python client, and the command line's own way to the running service."""
