"""Finding files and text in a tree, by ripgrep or by a scanner in Python that gives the same answers."""
