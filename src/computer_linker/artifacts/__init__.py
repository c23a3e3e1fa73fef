"""Artifacts: evidence and output with their owner, stored by digest."""
