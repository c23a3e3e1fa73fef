"""Backends of this machine, one folder per system; probe.py chooses."""
