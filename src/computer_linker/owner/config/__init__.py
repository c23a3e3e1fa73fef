"""Show, check and change config.json."""
