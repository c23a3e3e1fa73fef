"""Seeing the screen."""
