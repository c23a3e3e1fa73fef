"""The older surface (workspaces, underscored operations) on the same dispatcher. It adds names, never rights."""
