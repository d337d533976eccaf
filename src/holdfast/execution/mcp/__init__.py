"""Calls tools of other MCP servers, over HTTP and stdio, in all versions of the protocol.

An `Exchange` is one request in progress. A session sends requests to a server: `ModernSession` (2026-07-28, without
state) or `LegacySession`. `McpServers` keeps the sessions of all sources, and `McpRunner` runs tools with them.
"""
