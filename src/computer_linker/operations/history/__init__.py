"""history: what was done in this scope, by whom, and with what outcome."""
