"""Wayland: what the compositor allows, by its own protocols, without a library."""
