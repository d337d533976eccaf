"""MCP 2025-11-25 and before over HTTP: sessions, resumable streams, and HTTP+SSE."""
