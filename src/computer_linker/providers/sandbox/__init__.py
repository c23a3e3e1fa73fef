"""The kernel boundary around commands: bubblewrap, else Landlock, else none and said so."""
