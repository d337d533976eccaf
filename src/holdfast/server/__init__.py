"""The server: the engine over HTTP and WebSocket.

`listening` binds the port, `serving` runs and stops the server, and `app` builds the ASGI application. A request passes
`guards` (request id, Host and Origin, limits, timeouts), then an operation of `routes` answers it. Errors become
`problems`. Each of the `operations` is declared once: its route, its checks and its part of the OpenAPI document come
from the declaration. `traffic` limits concurrency, with separate limits for `streams` of events and `sockets`.
"""
