"""Evidence: files that each desktop execution writes to the workspace."""
