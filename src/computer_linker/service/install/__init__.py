"""Service mode: installs this program with the system's service manager, one module per system."""
