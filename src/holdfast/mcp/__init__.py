"""The parts of the Model Context Protocol that all its versions share: error codes, content, input requests.

This package has neither a server nor a client. `holdfast.gateway.mcp` is the server.
"""
