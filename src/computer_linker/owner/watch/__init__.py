"""What goes on, as it happens."""
