"""The `WWW-Authenticate` header of responses to callers that are not authorized (RFC 6750, RFC 9728)."""

import re

from starlette.datastructures import Headers
from starlette.types import Scope

from holdfast.access.claims import SCOPE_PREFIX
from holdfast.access.principals import MissingScope
from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError, Unauthenticated
from holdfast.server.host_origin import scheme_of

METADATA = "/.well-known/oauth-protected-resource"
RESOURCES = ("/mcp", "/rpc")  # addresses that are resources of their own; all others are one resource
SOCKET_SCHEMES = {"ws": "http", "wss": "https"}  # from the scheme of a WebSocket to that of the page that opens it

_UNQUOTABLE = re.compile(r"[^ !#-\[\]-~]")


def base_of(config: Config, scope: Scope) -> str:
    """Return the public URL of this server: from the settings, else from the request."""
    if config.resource is not None:
        return config.resource
    headers = Headers(scope=scope)
    scheme: str = scope["scheme"]
    return f"{scheme_of(SOCKET_SCHEMES.get(scheme, scheme), headers)}://{headers['host']}{config.server.root_path}"


def is_challenged(error: BaseException) -> bool:
    """Whether the response to an error is an HTTP status with a challenge, also where other errors are messages."""
    return isinstance(error, Unauthenticated | MissingScope)


class Challenges:
    """Builds challenges, which tell a caller what is missing and where to get a token."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def of(self, error: HoldfastError, scope: Scope) -> str | None:
        """Return the challenge for an error; None if the error is not about authentication or a missing scope.

        Its `scope` is what a client should ask for: at first the scopes of the settings, later all that the request
        needs.
        """
        parts = {"realm": "holdfast"}
        access = self._config.access
        match error:
            case Unauthenticated():
                if "authorization" in Headers(scope=scope):
                    parts["error"] = "invalid_token"
                    parts["error_description"] = _UNQUOTABLE.sub("'", error.why or error.what)
                if access.issuers and access.scopes_supported:
                    parts["scope"] = " ".join(access.scopes_supported)
            case MissingScope(details={"scope": str(needed)}):
                parts["error"] = "insufficient_scope"
                parts["scope"] = " ".join(f"{SCOPE_PREFIX}{each}" for each in needed.split())
            case _:
                return None
        if access.issuers:
            parts["resource_metadata"] = f"{base_of(self._config, scope)}{METADATA}{self._resource_at(scope)}"
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())

    def _resource_at(self, scope: Scope) -> str:
        """Return the path of the resource that a request is for; an empty text for the whole server."""
        path: str = scope["path"].removeprefix(self._config.server.root_path)
        return next((each for each in RESOURCES if path == each or path.startswith(f"{each}/")), "")
