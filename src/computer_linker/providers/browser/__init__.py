"""A browser of the scope's own: agent-browser and Chromium inside the boundary, and a gate for all they ask of the network."""
