"""Frozen values that cross a boundary. No I/O here."""
