"""Other people's frameworks on our conversations.

Each is a module and an extra, imported by its name: `holdfast.adapters.adk`, `holdfast.adapters.langchain`. `hosting`
gives them all an engine that any event loop, and code without one, can use.
"""
