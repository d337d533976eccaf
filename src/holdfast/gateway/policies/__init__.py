"""Policies: checks that every tool call passes, one after another."""
