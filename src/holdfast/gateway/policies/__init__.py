"""Policies: what every call of a tool passes, one after another."""
