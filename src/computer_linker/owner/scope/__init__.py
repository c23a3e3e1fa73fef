"""List, add, edit and remove what clients may use."""
