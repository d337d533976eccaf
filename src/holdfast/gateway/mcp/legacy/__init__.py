"""MCP of 2025-11-25 and before: sessions, what was sent to them and what they answered, are rows for every process."""
