"""The gateway: one address through which clients of MCP and of JSON-RPC reach what the engine and its back ends can do.

Who calls is known before; what they may call is decided here, by a registry that is kept in memory. It knows no
transport: `holdfast.server` carries what it says.
"""
