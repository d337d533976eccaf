"""The gateway: one address for MCP and JSON-RPC clients, in front of every tool, service and back end.

Callers are already authenticated. The gateway decides what they can call, from a registry that it caches in memory. It
is independent of transports: `holdfast.server` carries its messages.
"""
