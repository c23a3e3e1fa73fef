"""The fleet this machine is part of."""
