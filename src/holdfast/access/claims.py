"""Validates the claims of a token by the settings of its issuer. The caller has already verified the signature."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from holdfast.access.principals import LOCAL_USER, USER_SCOPES, with_included
from holdfast.core.errors import Unauthenticated
from holdfast.core.issuers import Issuer

SCOPE_PREFIX = "holdfast:"
SCOPE_CLAIMS = ("scope", "scp")  # that of RFC 9068, and that of Microsoft Entra and Okta
SHOWN = 100  # characters of a claim in an error

# A user, agent or tenant: as long as in keys, without characters that a header or a log line cannot contain.
_NAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,255}")


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The validated claims of a token. `grantable` are the scopes that its issuer may grant to this user."""

    tenant: str
    user: str
    scopes: frozenset[str]
    grantable: frozenset[str]
    agent: str | None
    until: float  # by our clock, the issuer's leeway included


def read_claims(claims: Mapping[str, object], issuer: Issuer, *, audiences: Collection[str], now: float) -> TokenClaims:
    """Return the claims of a token that `issuer` signed, if it is valid now and for one of `audiences`."""
    audience = claims.get("aud")
    token_audiences = cast(list[object], audience) if isinstance(audience, list) else [audience]
    if not any(isinstance(each, str) and each in audiences for each in token_audiences):
        raise invalid_token("its audience is another server", "Request a token whose audience is this server.")
    expires = _time(claims, "exp")
    if expires is None:
        raise invalid_token("it has no expiry time")
    until = expires + issuer.leeway
    if now >= until:
        raise invalid_token("it has expired")
    for name in ("nbf", "iat"):
        if (_time(claims, name) or -math.inf) > now + issuer.leeway:
            raise invalid_token("it is not valid yet")
    if "cnf" in claims:  # as a bearer token, a thief could use it
        raise invalid_token(
            "it is bound to a key of its holder, and this server does not support such tokens",
            "Request a bearer token.",
        )
    agent = None if issuer.agent_claim is None else _name(claims, issuer.agent_claim, required=False)
    grantable = frozenset[str](issuer.scopes)
    if agent is not None:
        grantable &= USER_SCOPES
    return TokenClaims(
        tenant=_tenant(claims, issuer),
        user=_user(claims, issuer),
        scopes=grantable & _scopes(claims, issuer),
        grantable=grantable,
        agent=agent,
        until=until,
    )


def invalid_token(why: str, next: str = "Request a new token from its issuer.") -> Unauthenticated:
    """Return the error for a token that is not accepted."""
    return Unauthenticated("the token is invalid", why=why, next=next)


def _time(claims: Mapping[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise invalid_token(f"its {name} is not a time")
    return float(value)


def _name(claims: Mapping[str, object], path: str, *, required: bool = True) -> str | None:
    value = _claim(claims, path)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise invalid_token(f"its {path} is not a name of 1 to 255 characters")
    return value


def _user(claims: Mapping[str, object], issuer: Issuer) -> str:
    user = _name(claims, issuer.user_claim) or ""
    if user == LOCAL_USER:  # the user of the person who set up the server
        raise invalid_token(f"its {issuer.user_claim} is {LOCAL_USER!r}, which is reserved")
    return user


def _tenant(claims: Mapping[str, object], issuer: Issuer) -> str:
    if issuer.tenant_claim is None:
        return issuer.tenant
    tenant = _name(claims, issuer.tenant_claim) or ""
    if issuer.tenants and tenant not in issuer.tenants:
        raise invalid_token(f"its issuer may not name the tenant {tenant[:SHOWN]!a}")
    return tenant


def _scopes(claims: Mapping[str, object], issuer: Issuer) -> frozenset[str]:
    """Return the scopes that a token names, with those that they include; if it names none, a user's scopes."""
    names = SCOPE_CLAIMS if issuer.scope_claim is None else (issuer.scope_claim,)
    return with_included(entry for name in names for entry in _scope_entries(_claim(claims, name))) or USER_SCOPES


def _scope_entries(value: object) -> Iterator[str]:
    """Yield the scopes of Holdfast in a claim: a list, or a string with spaces. Skips scopes of other services."""
    entries = value.split(" ") if isinstance(value, str) else value
    if isinstance(entries, list):
        for entry in cast(list[object], entries):
            if isinstance(entry, str) and entry.startswith(SCOPE_PREFIX):
                yield entry.removeprefix(SCOPE_PREFIX)


def _claim(claims: Mapping[str, object], path: str) -> object:
    """Return the claim with this name, otherwise the value at this dotted path."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = cast(dict[str, Any], value).get(name)
    return value
