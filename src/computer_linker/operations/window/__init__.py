"""Listing and placing windows."""
