"""Backends for every POSIX system, with the Linux calls that make them safer."""
