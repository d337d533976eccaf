"""The Model Context Protocol of both eras in front of tools, resources and prompts; no transport."""
