"""A first look at a workspace: what it is made of, what it asks of those who work in it, what has changed."""
