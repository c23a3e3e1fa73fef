"""Evidence: what was seen and kept."""
