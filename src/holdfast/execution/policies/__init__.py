"""Policies that every tool call passes: through the gateway, from an agent's turn, or direct."""
