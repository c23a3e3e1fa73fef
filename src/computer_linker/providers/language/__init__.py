"""Language servers: found on this machine, run inside the sandbox, one per language and root."""
