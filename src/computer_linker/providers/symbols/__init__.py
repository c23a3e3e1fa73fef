"""Definitions in source files: found by ripgrep, proved by tree-sitter, remembered by content."""
