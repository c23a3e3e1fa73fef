"""Finding files and text in a tree, by ripgrep."""
