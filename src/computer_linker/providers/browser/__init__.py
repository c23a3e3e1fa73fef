"""A browser per scope: agent-browser and Chromium inside the sandbox, and a proxy that checks their connections."""
