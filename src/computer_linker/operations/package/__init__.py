"""Package scripts: list, run and start them by the manager the project uses."""
