"""`holdfast keys`: create, list and revoke API keys."""

from typing import Annotated, Any

import typer

from holdfast.access.principals import check_scopes
from holdfast.cli.api import reach
from holdfast.cli.durations import lifetime
from holdfast.cli.ids import Id, full_id, the_only
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, table

app = group("Create, list and revoke API keys, and create sign-in links. A key is shown once, when it is created.")

COLUMNS = ["id", "principal", "agent", "label", "scopes", "created_at", "expires_at", "revoked_at"]

derive(app, "ls", "list_keys", table(COLUMNS, ids=["id"]))

Scopes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SCOPE", help="read, write, admin, act-as or operator. Can be repeated. [default: the first three]"
    ),
]


@command(app)
async def create(
    invocation: Invocation,
    user: Annotated[str, typer.Option("--user", "--principal", metavar="NAME", help="User of the key.")] = "local",
    scope: Scopes = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Agent that the key acts as, with that agent's tools. [read and write at most]"
        ),
    ] = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="Purpose of the key.", show_default=False)] = "",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Lifetime, such as 30d or 12h. [default: never expires]")
    ] = None,
) -> None:
    """Create an API key and print it. The key itself is not stored, and cannot be shown again.

    \b
    KEY=$(holdfast keys create --label backup --scope read --expires 30d)
    curl -H "Authorization: Bearer $KEY" http://127.0.0.1:4600/api/me
    """
    if scope:
        check_scopes(frozenset(scope))
    seconds = int(lifetime(expires).total_seconds()) if expires is not None else None
    async with reach(invocation) as api:
        created = await api.call(
            "create_key", principal=user, label=label, scopes=scope or None, agent=agent, lifetime_seconds=seconds
        )
    key = created["key"]
    invocation.output.say(
        f"Created the key {key['id']} of {_holder(key)}, with {', '.join(key['scopes'])}. It is not shown again:"
    )
    invocation.output.value(created["text"], {**key, "text": created["text"]})


@command(app)
async def revoke(invocation: Invocation, id: Id) -> None:
    """Revoke an API key. Every use of it ends within a second."""
    async with reach(invocation) as api:
        whole = full_id(id)
        if whole is None:
            known = [key["id"] for key in (await api.call("list_keys"))["keys"]]
            whole = the_only("key", id, [key for key in known if key.replace("-", "").startswith(id.replace("-", ""))])
        key = await api.call("revoke_key", id=whole)
    invocation.output.record(key)
    invocation.output.say(f"Revoked the key {whole}.")


@command(app)
async def link(
    invocation: Invocation,
    user: Annotated[
        str | None, typer.Option("--user", "--principal", metavar="NAME", help="User who signs in. [default: local]")
    ] = None,
    scope: Scopes = None,
) -> None:
    """Create a sign-in link for the console. It works once, within ten minutes.

    \b
    holdfast keys link
    holdfast keys link --user ann --scope read --scope write
    """
    if scope:
        check_scopes(frozenset(scope))
    async with reach(invocation, running=True) as api:
        created = await api.call("create_link", principal=user, scopes=scope or None)
    invocation.output.say("Open this link within ten minutes. It works once:")
    invocation.output.value(created["url"], created)


def _holder(key: dict[str, Any]) -> str:
    return key["principal"] if key["agent"] is None else f"{key['principal']}, for the agent {key['agent']}"
