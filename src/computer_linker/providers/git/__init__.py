"""Git by its own program, so hardened that a repository cannot choose what runs."""
