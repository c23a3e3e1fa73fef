"""What operations share above the facets: search, git, the sandbox, agents, the browser and more."""
