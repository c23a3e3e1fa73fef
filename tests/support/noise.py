"""Bytes that look random and are the same in every run."""

import random


def noise(size: int, seed: int = 1) -> bytes:
    """So many bytes that cannot be compressed."""
    return random.Random(seed).randbytes(size)
