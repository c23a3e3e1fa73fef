"""Find the hop that does not work."""
