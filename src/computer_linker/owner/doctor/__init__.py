"""Look at config, security and programs, and repair what has one right answer."""
