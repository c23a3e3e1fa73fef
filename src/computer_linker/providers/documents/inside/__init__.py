"""What runs inside the decoder process. Nothing here is imported by the service."""
