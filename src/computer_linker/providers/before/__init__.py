"""Before-images: what a scope's folder was before a command, so that its changes can be taken back."""
