"""One file a backend; each assigns its ExternalBackend to `BACKEND`."""
