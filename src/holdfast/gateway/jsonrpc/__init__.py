"""JSON-RPC 2.0, and the envelope that was before it, in front of services and tools; no transport."""
