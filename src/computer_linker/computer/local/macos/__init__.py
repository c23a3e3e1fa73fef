"""macOS: capture, input, windows and clipboard by Quartz and AppKit. Unproven: no test has run on a Mac yet."""
