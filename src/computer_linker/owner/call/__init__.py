"""Calls of clients that run now."""
