"""The `WWW-Authenticate` header of responses to callers that are not authorized (RFC 6750, RFC 9728)."""

import re

from starlette.datastructures import Headers
from starlette.types import Scope

from holdfast.access.claims import SCOPE_PREFIX
from holdfast.core.config import Config
from holdfast.core.errors import Forbidden, HoldfastError, Unauthenticated
from holdfast.server.host_origin import scheme_of

METADATA = "/.well-known/oauth-protected-resource"
SOCKET_SCHEMES = {"ws": "http", "wss": "https"}  # from the scheme of a WebSocket to that of the page that opens it

_UNQUOTABLE = re.compile(r"[^ !#-\[\]-~]")


def base_of(config: Config, scope: Scope) -> str:
    """Return the public URL of this server: from the settings, else from the request."""
    if config.resource is not None:
        return config.resource
    headers = Headers(scope=scope)
    scheme: str = scope["scheme"]
    return f"{scheme_of(SOCKET_SCHEMES.get(scheme, scheme), headers)}://{headers['host']}{config.server.root_path}"


class Challenges:
    """Builds challenges, which tell a caller what is missing and where to get a token."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def of(self, error: HoldfastError, scope: Scope) -> str | None:
        """Return the challenge for an error; None if the error is not about authentication or a missing scope."""
        parts = {"realm": "holdfast"}
        match error:
            case Unauthenticated():
                if "authorization" in Headers(scope=scope):
                    parts["error"] = "invalid_token"
                    parts["error_description"] = _UNQUOTABLE.sub("'", error.why or error.what)
            case Forbidden(details={"scope": str(needed)}):
                parts["error"] = "insufficient_scope"
                parts["scope"] = f"{SCOPE_PREFIX}{needed}"
            case _:
                return None
        if self._config.access.issuers:
            parts["resource_metadata"] = f"{base_of(self._config, scope)}{METADATA}/mcp"
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())
