"""Options of `holdfast sources` that say what a back end learns about callers."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from holdfast.core.errors import InvalidInput

NONE = "none"
KINDS = {
    "signed": "signed",
    "client-credentials": "client_credentials",
    "token-exchange": "token_exchange",
    "pass-through": "pass_through",
    "user": "user",
}


@dataclass(frozen=True, slots=True)
class GivenIdentity:
    """What the options of a command say of an identity."""

    kind: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def changed(self, old: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the identity for the API, or None for none: the old one with these options, or another one."""
        kind, options = self.kind, dict(self.options)
        if kind == NONE:
            if options:
                raise InvalidInput(f"--identity {NONE} takes no {_option(next(iter(options)))}", next="Leave it out.")
            return None
        if kind is not None and kind not in KINDS:
            raise InvalidInput(f"there is no identity {kind!r:.60}", next=f"Use one of {', '.join(KINDS)}, {NONE}.")
        if kind is None and old is None:
            if options:
                next_step = f"Pass --identity with one of {', '.join(KINDS)}."
                raise InvalidInput(f"{_option(next(iter(options)))} needs an identity", next=next_step)
            return None
        if "fallback" in options:
            options["fallback"] = None if options["fallback"] == NONE else options["fallback"].replace("-", "_")
        if old is not None and kind in (None, _shown(old["kind"])):
            return {**old, **options}
        return {"kind": KINDS[str(kind)], **options}


NO_IDENTITY = GivenIdentity()


def takes_identity(run: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Give a command the options of an identity. It gets them as its parameter `identity`."""

    async def with_identity(*words: Any, **given: Any) -> None:
        options = {name: given.pop(name) for name in names}
        kind = options.pop("identity")
        known = {"scopes" if name == "scope" else name: value for name, value in options.items() if value}
        await run(*words, **given, identity=GivenIdentity(kind, known | _flags(options)))

    own = [each for each in inspect.signature(run, eval_str=True).parameters.values() if each.name != "identity"]
    more = list(inspect.signature(_options, eval_str=True).parameters.values())
    names = [each.name for each in more]
    with_identity.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    with_identity.__name__ = run.__name__
    with_identity.__doc__ = run.__doc__
    return with_identity


def _options(
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help=f"What the back end learns about callers: {', '.join(KINDS)}. [default: {NONE}]"
        ),
    ] = None,
    audience: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For whom tokens are. [default if signed: the address]")
    ] = None,
    resource: Annotated[
        str | None, typer.Option(metavar="URL", help="For which address tokens are (RFC 8707).")
    ] = None,
    scope: Annotated[list[str] | None, typer.Option(metavar="SCOPE", help="Scope of tokens. Can be repeated.")] = None,
    issuer: Annotated[str | None, typer.Option(metavar="URL", help="Authorization server that issues tokens.")] = None,
    token_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Its token endpoint. [default: from the issuer's metadata]")
    ] = None,
    authorize_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where users agree. [default: from the issuer's metadata]")
    ] = None,
    client_id: Annotated[str | None, typer.Option(metavar="ID", help="Client id of this server there.")] = None,
    client_secret: Annotated[
        str | None, typer.Option(metavar="SECRET", help="Name of the secret with the client secret.")
    ] = None,
    client_auth: Annotated[
        str | None, typer.Option(metavar="HOW", help="How it is sent: basic or post. [default: basic]")
    ] = None,
    actor: Annotated[bool | None, typer.Option(help="Name this server as the actor in exchanged tokens.")] = None,
    requested: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Type of exchanged tokens: access_token or jwt.")
    ] = None,
    fallback: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="What the back end gets if the caller has no token: signed or client-credentials. [default: no call]",
        ),
    ] = None,
) -> None: ...


def _flags(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if isinstance(value, bool)}


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
