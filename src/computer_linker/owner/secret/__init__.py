"""Store what programs may use at one host and never read."""
