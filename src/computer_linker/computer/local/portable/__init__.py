"""What works on every POSIX system, and the Linux calls that make it safer."""
