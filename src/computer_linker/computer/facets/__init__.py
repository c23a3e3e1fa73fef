"""The abilities of a computer, one Protocol a file."""
