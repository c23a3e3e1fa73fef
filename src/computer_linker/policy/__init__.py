"""Decides; touches nothing. No I/O in this package."""
