"""OAuth metadata, without authentication: the issuers whose tokens the server accepts (RFC 9728), and its own keys."""

from typing import Any

import msgspec
from starlette.responses import Response

from holdfast.core.errors import NotFound
from holdfast.core.issuers import is_url
from holdfast.core.text import render
from holdfast.execution.identity.identity_keys import MAX_AGE
from holdfast.server.challenges import METADATA, RESOURCES, base_of
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("about")

JWKS = "/.well-known/jwks.json"


class ProtectedResource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A protected resource, and the issuers whose tokens it accepts."""

    resource: str
    authorization_servers: list[str]
    bearer_methods_supported: list[str]
    resource_name: str
    scopes_supported: list[str] = []


class JsonWebKeys(msgspec.Struct, frozen=True):
    """The public keys (JWK) that verify who calls, for back ends."""

    keys: list[dict[str, Any]]


@operations.declare("GET", JWKS, needs="nobody")
async def public_keys(call: ApiCall) -> JsonWebKeys | Response:
    """Get the public keys of the tokens in `Holdfast-Identity` (JWKS)."""
    keys = await call.engine.identity_keys.published()
    headers = {"Cache-Control": f"public, max-age={MAX_AGE}"}
    return Response(render({"keys": keys}), media_type="application/json", headers=headers)


@operations.declare("GET", METADATA, needs="nobody", errors=[NotFound])
async def protected_resource(call: ApiCall) -> ProtectedResource:
    """Get the issuers whose tokens this server accepts."""
    return _metadata(call, "")


@operations.declare("GET", f"{METADATA}/{{path}}", needs="nobody", errors=[NotFound])
async def protected_resource_at(call: ApiCall, path: str) -> ProtectedResource:
    """Get the issuers whose tokens one address accepts: `mcp` or `rpc`, with or without the root path of a proxy."""
    resource = f"/{path}".removeprefix(call.engine.config.server.root_path)
    if resource not in ("", *RESOURCES):
        known = " and ".join(f"{METADATA}{each}" for each in RESOURCES)
        raise NotFound("there is no such resource", next=f"{known} are about those that there are.")
    return _metadata(call, resource)


def _metadata(call: ApiCall, path: str) -> ProtectedResource:
    config = call.engine.config
    if not config.access.issuers:
        raise NotFound("tokens are not accepted here", why="access.issuers is empty", next="Use a key.")
    return ProtectedResource(
        resource=base_of(config, call.request.scope) + path,
        authorization_servers=[each.issuer for each in config.access.issuers if is_url(each.issuer)],
        bearer_methods_supported=["header"],
        resource_name="Holdfast",
        scopes_supported=list(config.access.scopes_supported),
    )
