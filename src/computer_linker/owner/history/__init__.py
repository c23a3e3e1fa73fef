"""Who did what on this computer."""
