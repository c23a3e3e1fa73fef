"""Notices that applications show to the person."""
