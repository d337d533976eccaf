"""MCP over HTTP: the versions with sessions and the version without, on one path."""
