"""Be the hub of a fleet: one MCP endpoint, over HTTP and stdio, for all machines that joined through a NATS server."""
