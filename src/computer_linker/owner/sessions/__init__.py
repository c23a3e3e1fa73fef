"""The OAuth clients that may use this computer."""
