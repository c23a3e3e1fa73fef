"""Seeing the desktop and acting on it."""
