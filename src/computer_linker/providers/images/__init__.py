"""Captured pixels as images: cut, masked, made to fit and encoded."""
