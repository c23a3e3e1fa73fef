"""A connector's real steps, played one by one, so that the hop that fails can be named."""
