"""Package scripts: what a project defines, and which program runs it."""
