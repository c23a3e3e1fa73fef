"""What waits for your yes: a live list on a terminal, or list, allow and deny."""
