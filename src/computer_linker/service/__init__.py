"""The running service: what it is made of, how it lives, and how it is diagnosed."""
