"""The X11 backends: capture, input, windows and clipboard, without external programs."""
