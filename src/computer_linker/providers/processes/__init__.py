"""Running programs: resolving, starting, bounding their output, and keeping track of the long-running ones."""
