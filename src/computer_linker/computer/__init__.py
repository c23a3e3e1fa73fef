"""What a machine can do, wherever it is."""
