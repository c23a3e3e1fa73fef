"""Proof in one place: what was seen or made, whose it is, kept by its digest."""
