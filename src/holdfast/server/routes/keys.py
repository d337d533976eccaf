"""API keys of the caller's tenant, and sign-in links for browsers."""

import re
from datetime import timedelta
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

import msgspec

from holdfast.access.keys import LINK_LIFETIME, Key, NewKey
from holdfast.access.principals import USER_SCOPES, Scope
from holdfast.core.errors import InvalidInput, NotFound
from holdfast.server.fields import documented
from holdfast.server.host_origin import scheme_of
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("keys")

CENTURY = 100 * 365 * 24 * 3600

# One line, for headers and logs. A pattern cannot exclude lone surrogates, so they are checked separately.
HALF = re.compile("[\ud800-\udfff]")
ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=ONE_LINE)]
Scopes = Annotated[tuple[Scope, ...], msgspec.Meta(min_length=1)]
Label = Annotated[str, msgspec.Meta(max_length=255, pattern=ONE_LINE)]


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API key to create. The default scopes are read, write and admin. `lifetime_seconds`: when it expires.

    With `agent`, tool calls with this key act as that agent. Such a key has read and write at most, by default both.
    """

    principal: Name
    scopes: Scopes | None = None
    agent: Name | None = None
    label: Label = ""
    lifetime_seconds: Annotated[int, msgspec.Meta(ge=1, le=CENTURY)] | None = None


AGENT_RULE = documented(
    anyOf=[
        {"properties": {"agent": {"type": "null"}}},
        {"properties": {"scopes": {"anyOf": [{"type": "null"}, {"items": {"enum": sorted(USER_SCOPES)}}]}}},
    ]
)


class KeyList(msgspec.Struct, frozen=True):
    """API keys, newest first, including revoked ones, and sessions of browsers."""

    keys: list[Key]


class LinkRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link to create, by default for the caller. The default scopes are read, write and admin."""

    principal: Name | None = None
    scopes: Scopes | None = None


class SignInLink(msgspec.Struct, frozen=True):
    """A one-time link that signs a browser in."""

    url: str
    path: str
    lifetime_seconds: int


@operations.declare("GET", "/api/keys", needs="admin")
async def list_keys(call: ApiCall) -> KeyList:
    """List the API keys of the tenant, newest first."""
    return KeyList(await call.engine.keys.list(call.principal.tenant))


@operations.declare(
    "POST",
    "/api/keys",
    needs="admin",
    status=201,
    audit=["principal", "scopes", "agent", "label", "lifetime_seconds"],
)
async def create_key(call: ApiCall, body: Annotated[KeyRequest, AGENT_RULE]) -> NewKey:
    """Create an API key. Its text is shown only once."""
    _check_surrogates(body.principal, body.agent, body.label)
    scopes = _check_scopes(call, body.scopes)
    lifetime = None if body.lifetime_seconds is None else timedelta(seconds=body.lifetime_seconds)
    created = await call.engine.keys.create(
        call.principal.tenant,
        body.principal,
        scopes=scopes,
        agent=body.agent,
        label=body.label,
        lifetime=lifetime,
    )
    call.target = str(created.key.id)
    return created


@operations.declare("POST", "/api/keys/link", needs="admin", status=201, audit=["principal", "scopes"])
async def create_link(call: ApiCall, body: LinkRequest) -> SignInLink:
    """Create a one-time link that signs a browser in."""
    _check_surrogates(body.principal)
    user = body.principal or call.principal.user
    text = await call.engine.keys.create_link(call.principal.tenant, user, scopes=_check_scopes(call, body.scopes))
    path = f"{call.engine.config.server.root_path}/login?link={quote(text)}"
    headers = call.request.headers
    url = f"{scheme_of(call.request.scope['scheme'], headers)}://{headers['host']}{path}"
    return SignInLink(url, path, int(LINK_LIFETIME.total_seconds()))


@operations.declare("DELETE", "/api/keys/{id}", needs="admin", errors=[NotFound])
async def revoke_key(call: ApiCall, id: UUID) -> Key:
    """Revoke an API key of the tenant. This takes effect within a second."""
    return await call.engine.keys.revoke(call.principal.tenant, id)


def _check_surrogates(*texts: str | None) -> None:
    """Refuse texts with lone surrogates."""
    for text in texts:
        if text is not None and HALF.search(text):
            raise InvalidInput("a name contains a lone surrogate", why=f"it is {text[:100]!a}", next="Correct it.")


def _check_scopes(call: ApiCall, scopes: tuple[Scope, ...] | None) -> frozenset[str] | None:
    """Return the requested scopes, if the caller may grant them."""
    if scopes is not None and "operator" in scopes:
        call.principal.require("operator")  # else an admin of one tenant could access all tenants
    return None if scopes is None else frozenset(scopes)
