"""JSON-RPC 2.0, and the envelope before it, in front of services and tools; independent of transports."""
