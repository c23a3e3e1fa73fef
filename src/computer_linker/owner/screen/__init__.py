"""Screenshots: whether they can be had, and for whom."""
