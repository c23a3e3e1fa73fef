"""The kernel boundary around commands: bubblewrap, else Landlock, else none, which is reported."""
