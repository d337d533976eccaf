"""MCP of 2025-11-25 and before. Sessions, streams and answers are rows, so that any process can serve a client."""
