"""The clients we can write ourselves into: one file each, and the careful hands that change their settings."""
