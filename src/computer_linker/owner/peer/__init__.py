"""Other computers: listen for them, pair, list and remove."""
