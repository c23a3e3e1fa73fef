"""The Wayland backends: a client of the compositor's protocols without a library."""
