"""The clients we can configure, and the editors of their settings files."""
