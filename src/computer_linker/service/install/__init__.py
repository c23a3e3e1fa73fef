"""Service mode: this program kept running by the system's own service manager, one file a system."""
