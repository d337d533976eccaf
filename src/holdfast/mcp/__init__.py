"""The Model Context Protocol, as both of its eras write it: versions, errors, content, input requests.

Nothing here serves or calls anybody: `holdfast.gateway.mcp` serves it.
"""
