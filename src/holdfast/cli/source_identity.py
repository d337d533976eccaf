"""Options of `holdfast sources` that say what a back end learns about callers."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from holdfast.core.errors import InvalidInput

NONE = "none"
KINDS = {
    "signed": "signed",
    "client-credentials": "client_credentials",
    "token-exchange": "token_exchange",
    "pass-through": "pass_through",
}

IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity",
        metavar="KIND",
        help=f"What the back end learns about callers: {', '.join(KINDS)} or {NONE}. [default: {NONE}]",
    ),
]
Audience = Annotated[
    str | None, typer.Option(metavar="TEXT", help="For whom tokens are. [default if signed: the back end's address]")
]
Resource = Annotated[str | None, typer.Option(metavar="URL", help="For which address tokens are (RFC 8707).")]
Scope = Annotated[list[str] | None, typer.Option(metavar="SCOPE", help="Scope of tokens. Can be repeated.")]
Issuer = Annotated[str | None, typer.Option(metavar="URL", help="Authorization server that issues tokens.")]
TokenUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Its token endpoint. [default: from the metadata of the issuer]")
]
ClientId = Annotated[str | None, typer.Option(metavar="ID", help="Client id of this server there.")]
ClientSecret = Annotated[str | None, typer.Option(metavar="SECRET", help="Name of the secret with the client secret.")]
ClientAuth = Annotated[
    str | None, typer.Option(metavar="HOW", help="How the client secret is sent: basic or post. [default: basic]")
]
Actor = Annotated[bool | None, typer.Option(help="Name this server as the actor in exchanged tokens.")]
Requested = Annotated[
    str | None, typer.Option(metavar="TYPE", help="Type of exchanged tokens: access_token or jwt. [default: the first]")
]
Fallback = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="What the back end gets if the caller has no token: signed or client-credentials. [default: no call]",
    ),
]


def identity_of(kind: str | None, old: Mapping[str, Any] | None, **given: Any) -> dict[str, Any] | None:
    """Return an identity for the API, or None for none: the old one with the given options. `kind`: a new one."""
    options = {name: value for name, value in given.items() if value is not None and value != []}
    if kind == NONE:
        if options:
            raise InvalidInput(f"--identity {NONE} takes no {_option(next(iter(options)))}", next="Leave it out.")
        return None
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"there is no identity {kind!r:.60}", next=f"Use one of {', '.join(KINDS)}, {NONE}.")
    if kind is None and old is None:
        if options:
            option = _option(next(iter(options)))
            raise InvalidInput(f"{option} needs an identity", next=f"Pass --identity with one of {', '.join(KINDS)}.")
        return None
    if "fallback" in options:
        options["fallback"] = None if options["fallback"] == NONE else options["fallback"].replace("-", "_")
    is_same = old is not None and kind in (None, _shown(old["kind"]))
    known: dict[str, Any] = dict(old) if is_same and old is not None else {"kind": KINDS[kind or ""]}
    return {**known, **options}


def describe_identity(identity: Mapping[str, Any] | None) -> str:
    """Return an identity for the terminal."""
    if identity is None:
        return ""
    words = [_shown(identity["kind"])]
    words += [f"for {identity[name]}" for name in ("audience", "resource") if identity.get(name)]
    server = identity.get("issuer") or identity.get("token_url")
    words += [f"by {server}"] if server else []
    words += [f"as {identity['client_id']}"] if identity.get("client_id") else []
    words += [f"with the secret {identity['client_secret']}"] if identity.get("client_secret") else []
    words += [f"scopes {' '.join(identity['scopes'])}"] if identity.get("scopes") else []
    words += ["this server is the actor"] if identity.get("actor") else []
    words += [f"otherwise {_shown(identity['fallback'])}"] if identity.get("fallback") else []
    return ", ".join(words)


def _shown(kind: str) -> str:
    return kind.replace("_", "-")


def _option(name: str) -> str:
    return f"--{'scope' if name == 'scopes' else name.replace('_', '-')}"
