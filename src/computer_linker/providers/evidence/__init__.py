"""Evidence: what each desktop execution leaves behind in the workspace."""
