"""Running programs: resolving, starting, bounding their output, and tracking the long-running ones."""
