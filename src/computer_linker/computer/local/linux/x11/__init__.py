"""X11: capture, input, windows and clipboard over one connection, without a tool program."""
