"""Keep this program running as a service of your user."""
