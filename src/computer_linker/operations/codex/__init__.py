"""codex.*: run an agent program in a folder of the scope."""
