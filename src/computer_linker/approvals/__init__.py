"""Approvals: what waits for the owner, who may answer, what a yes covers, and what it is held to."""
