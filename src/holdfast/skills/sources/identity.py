"""What a back end learns about callers, as a source sets it: which settings go together. Pure."""

import re
from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import Backend, BackendIdentity, IdentityKind
from holdfast.skills.sources.source import SourceKind

MAX_TEXT = 2000  # characters of an audience, a resource, a client id
MAX_SCOPES = 100
SCOPE = r"[\x21\x23-\x5b\x5d-\x7e]{1,200}"
TEXT = r"[^\x00-\x1f\x7f]*"

_SCOPE = re.compile(SCOPE)
_TEXT = re.compile(TEXT)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SECRET_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,125}")
_OAUTH = ("resource", "scopes", "issuer", "token_url", "client_id", "client_secret", "client_auth")
# The fields that each kind takes, besides `kind`.
TAKES: Mapping[IdentityKind, frozenset[str]] = {
    "signed": frozenset({"audience"}),
    "client_credentials": frozenset({"audience", *_OAUTH}),
    "token_exchange": frozenset({"audience", *_OAUTH, "actor", "requested", "fallback"}),
    "pass_through": frozenset(),
    "user": frozenset({*_OAUTH, "authorize_url"}),
}
CheckAddress = Callable[[str, str], str]


def check_identity(backend: Backend, check_address: CheckAddress) -> None:
    """Refuse an identity whose settings do not go together, or that its back end cannot get."""
    identity = backend.identity
    if identity is None:
        return
    if identity.kind not in TAKES:
        raise _error(f"the identity {identity.kind!a} is unknown", f"Use one of {', '.join(TAKES)}.")
    given = {name for name in identity.__struct_fields__ if getattr(identity, name) != _default_of(name)} - {"kind"}
    if others := sorted(given - TAKES[identity.kind]):
        raise _error(f"the identity {identity.kind} takes no {others[0]}", f"Leave out {', '.join(others)}.")
    _check_fields(identity, check_address)
    if identity.kind == "user":  # servers know clients by other ways, too
        if identity.client_secret and not identity.client_id:
            raise _error("it has a client secret without a client id", "Pass the client id, too.")
    elif "client_id" in TAKES[identity.kind]:
        _check_client(identity)
    _check_receiver(identity, backend)


def check_pass_through(
    identity: BackendIdentity | None, kind: SourceKind, origins: Collection[str], hosts: Collection[str]
) -> None:
    """Refuse to pass callers' tokens to a back end for which the operator has not allowed it.

    `origins` are the addresses that the source calls, `hosts` those of the setting.
    """
    if identity is None or identity.kind != "pass_through":
        return
    if kind != "openapi":
        next = "Use signed headers or token exchange."
        raise _error("callers' own tokens can only be passed to a REST service", next)
    for origin in sorted(origins):
        if not is_listed(origin, hosts):
            host = urlsplit(origin).netloc
            next = f"Ask an operator to add {host} to the setting execution.pass_through, or use token exchange."
            raise _error(f"callers' own tokens may not be passed to {host}", next)


def is_listed(origin: str, hosts: Collection[str]) -> bool:
    """Whether the host of an origin is one of some hosts, with its port or without any."""
    parts = urlsplit(origin)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    shown = f"[{host}]" if ":" in host else host
    return not {shown, f"{shown}:{port}"}.isdisjoint(each.lower() for each in hosts)


def _check_fields(identity: BackendIdentity, check_address: CheckAddress) -> None:
    for name in ("audience", "resource", "client_id"):
        text = getattr(identity, name)
        if len(text) > MAX_TEXT or not _TEXT.fullmatch(text) or _SURROGATE.search(text):
            raise _error(f"its {_words(name)} is invalid", f"Use one line of at most {MAX_TEXT} characters.")
    for name in ("issuer", "token_url", "authorize_url", "resource"):
        if text := getattr(identity, name):
            check_address(text, f"its {_words(name)}")
    if len(identity.scopes) > MAX_SCOPES or not all(_SCOPE.fullmatch(scope) for scope in identity.scopes):
        raise _error("one of its scopes is invalid", f"Use at most {MAX_SCOPES}, without spaces and quotes.")
    if identity.client_secret and not _SECRET_NAME.fullmatch(identity.client_secret):
        next = "Use the name of a secret, and store its value with `holdfast secrets set`."
        raise _error("its client secret is not the name of a secret", next)


def _check_client(identity: BackendIdentity) -> None:
    if not identity.issuer and not identity.token_url:
        raise _error(f"the identity {identity.kind} needs an authorization server", "Pass its issuer or its token URL.")
    if not identity.client_id:
        raise _error(f"the identity {identity.kind} needs a client id", "Pass the client id of this engine.")
    if not identity.client_secret and (identity.kind == "client_credentials" or identity.actor):
        next = "Store it with `holdfast secrets set NAME`, and pass its name."
        raise _error(f"the identity {identity.kind} needs a client secret", next)
    if identity.kind == "token_exchange" and not identity.audience and not identity.resource:
        next = "Pass an audience or a resource, so that a token is good for this back end only."
        raise _error("the identity token_exchange does not say for whom tokens are", next)
    if identity.fallback == "client_credentials" and not identity.client_secret:
        next = "Store it with `holdfast secrets set NAME`, and pass its name."
        raise _error("tokens of the engine's own need a client secret", next)


def _check_receiver(identity: BackendIdentity, backend: Backend) -> None:
    names = {name.lower() for name in backend.headers}
    if identity.sends_token and "authorization" in names:
        raise _error("it has two tokens: that of its identity, and the header Authorization", "Remove the header.")
    server = backend.mcp
    if server is None:
        return
    if server.command:
        raise _error("a program gets no identity", "Use variables of its environment (--env).")
    if identity.kind == "pass_through":
        raise _error("callers' own tokens are never passed to MCP servers", "Use signed headers or token exchange.")
    if server.shared and identity.kind in ("token_exchange", "user"):
        raise _error("users share its session, and each would have another token", "Use no shared session.")


def _default_of(name: str) -> object:
    return getattr(_DEFAULTS, name)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _error(why: str, next: str) -> InvalidInput:
    return InvalidInput("the source cannot be stored", why=why, next=next)


_DEFAULTS = msgspec.convert({"kind": "signed"}, BackendIdentity)
