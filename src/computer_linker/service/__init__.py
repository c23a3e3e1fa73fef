"""The running service: its components, lifetime and diagnosis."""
