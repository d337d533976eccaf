"""The MCP server, modern and legacy, in front of tools, resources and prompts; independent of transports."""
