"""Overview of a workspace: languages and configuration, instructions for contributors, changes."""
