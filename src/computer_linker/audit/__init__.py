"""The history: append-only, chained, and redacted: no contents, output or secrets."""
