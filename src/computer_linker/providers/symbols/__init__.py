"""Definitions in source files: found by ripgrep, verified by tree-sitter, cached by content."""
