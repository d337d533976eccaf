"""Adapters: other frameworks on top of Holdfast's conversations and memories.

Each adapter is a module with an extra of its own: `holdfast.adapters.adk`, `holdfast.adapters.langchain`. `hosting`
gives them an engine that can be called from any event loop, and from code without one.
"""
