"""The journal of what file changes replaced, so that they can be taken back."""
