"""This machine, when it runs Linux."""
