"""This machine: one folder a system; probe.py chooses."""
