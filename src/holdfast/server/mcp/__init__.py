"""MCP over HTTP: both eras on one address."""
