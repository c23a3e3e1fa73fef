"""Windows: windows, input, capture and clipboard through the system's own functions."""
