"""A fleet: many machines reached through one NATS server, each keeping its own policy, approval and history."""
