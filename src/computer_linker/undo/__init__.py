"""The undo journal: what file changes replaced, so that they can be undone."""
