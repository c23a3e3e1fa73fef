"""Tunnel providers, one file each, and their supervisor."""
