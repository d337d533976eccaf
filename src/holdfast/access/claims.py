"""What a token says of its holder, judged by what its issuer may say. Pure: the signature was checked before."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from holdfast.access.principals import LOCAL_USER, USER_SCOPES
from holdfast.core.errors import Unauthenticated
from holdfast.core.issuers import Issuer

SCOPE_PREFIX = "holdfast:"
SHOWN = 100  # characters of what a token says

# What a key's owner can be called: what a header and a log line can hold.
_NAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,255}")


@dataclass(frozen=True, slots=True)
class Claimed:
    """Whom a token is of, what they may do, and until when."""

    tenant: str
    user: str
    scopes: frozenset[str]
    agent: str | None
    until: float  # by our clock


def claimed(claims: Mapping[str, object], issuer: Issuer, *, audiences: Collection[str], now: float) -> Claimed:
    """What a token says that `issuer` has signed, if it is one for us and for now."""
    audience = claims.get("aud")
    given = cast(list[object], audience) if isinstance(audience, list) else [audience]
    if not any(isinstance(each, str) and each in audiences for each in given):
        raise refused("it is for somebody else", "Ask its issuer for one whose audience is this server.")
    expires = _moment(claims, "exp")
    if expires is None:
        raise refused("it does not say when it expires")
    until = expires + issuer.leeway
    if now >= until:
        raise refused("it has expired")
    for name in ("nbf", "iat"):
        if (_moment(claims, name) or -math.inf) > now + issuer.leeway:
            raise refused("it is not valid yet")
    if "cnf" in claims:  # who took it on its way must not be able to use it
        raise refused("it is bound to a key of its holder, which is not asked for here", "Ask for a bearer token.")
    agent = None if issuer.agent_claim is None else _name(claims, issuer.agent_claim, required=False)
    scopes = _scopes(claims, issuer)
    return Claimed(
        tenant=_tenant(claims, issuer),
        user=_user(claims, issuer),
        scopes=scopes if agent is None else scopes & USER_SCOPES,
        agent=agent,
        until=until,
    )


def refused(why: str, next: str = "Get another one from its issuer.") -> Unauthenticated:
    """What is told of a token that is not taken."""
    return Unauthenticated("this token is not valid", why=why, next=next)


def _moment(claims: Mapping[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise refused(f"its {name} is no time")
    return float(value)


def _name(claims: Mapping[str, object], path: str, *, required: bool = True) -> str | None:
    value = _at(claims, path)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise refused(f"its {path} is no name of 1 to 255 characters")
    return value


def _user(claims: Mapping[str, object], issuer: Issuer) -> str:
    user = _name(claims, issuer.user_claim) or ""
    if user == LOCAL_USER:  # whose things are those of whoever set the server up
        raise refused(f"its {issuer.user_claim} is {LOCAL_USER!r}, which no issuer speaks for")
    return user


def _tenant(claims: Mapping[str, object], issuer: Issuer) -> str:
    if issuer.tenant_claim is None:
        return issuer.tenant
    tenant = _name(claims, issuer.tenant_claim) or ""
    if issuer.tenants and tenant not in issuer.tenants:
        raise refused(f"its issuer does not speak for the tenant {tenant[:SHOWN]!a}")
    return tenant


def _scopes(claims: Mapping[str, object], issuer: Issuer) -> frozenset[str]:
    """What its holder may do: no more than the issuer's tokens may, and no more than it says."""
    possible = frozenset[str](issuer.scopes)
    named = frozenset(_entries(_at(claims, issuer.scope_claim)))
    return possible & (named or USER_SCOPES)


def _entries(value: object) -> Iterator[str]:
    """The scopes among what a token names, which may be others', too: a text with spaces, or a list."""
    entries = value.split(" ") if isinstance(value, str) else value
    if isinstance(entries, list):
        for entry in cast(list[object], entries):
            if isinstance(entry, str) and entry.startswith(SCOPE_PREFIX):
                yield entry.removeprefix(SCOPE_PREFIX)


def _at(claims: Mapping[str, object], path: str) -> object:
    """The claim of this name, else what lies at this path of names with dots between them."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = cast(dict[str, Any], value).get(name)
    return value
