"""Policy decisions. No I/O in this package."""
