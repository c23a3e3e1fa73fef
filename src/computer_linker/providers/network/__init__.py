"""The gate: the only network of programs whose scope lists its hosts."""
