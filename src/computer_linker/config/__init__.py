"""The one config file: its shape, how it is loaded, stored, migrated and diagnosed."""
