"""MCP of 2025-11-25 and before over HTTP: sessions, streams that are taken up again, and HTTP+SSE."""
