"""A fleet: machines reached through one NATS server, each with its own policy, approval and history."""
