"""The engine over HTTP and WebSocket.

`listening` takes the port, `serving` runs the server on it and stops it, `app` puts the rest together. A request passes
`guards` (request id, Host and Origin, limits, time-outs), is answered by an operation of `routes`, and what goes wrong
becomes one of the `problems`. `operations` are declared once: the routes, their checks and the OpenAPI document come
from the declaration. What lasts, `streams` of events and `sockets`, is counted apart from other requests by `traffic`.
"""
