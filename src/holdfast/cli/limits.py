"""`holdfast limits`: list, set and remove rate limits and budgets, and show what was used."""

from datetime import datetime
from typing import Annotated, Any

import typer

from holdfast.cli.api import reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, table

app = group("List, set and remove rate limits and budgets of a tenant, and show what was used.")

COLUMNS = {"rule": "LIMIT", "origin": "SET BY", "updated_by": "BY", "updated_at": "AT"}
USAGE = {"limit": "LIMIT", "subject": "SUBJECT", "shown": "USED", "state": "STATE"}
MODELS = {
    "day": "DAY",
    "user": "USER",
    "agent": "AGENT",
    "model": "MODEL",
    "calls": "CALLS",
    "input_tokens": "INPUT",
    "output_tokens": "OUTPUT",
    "cost": "COST",
}

derive(app, "ls", "list_limits", table(COLUMNS))
derive(app, "rm", "remove_limit", message("Removed the limit {name}."))


@command(app, "set")
async def set_(
    invocation: Invocation,
    rule: Annotated[str, typer.Argument(metavar="LIMIT")],
    as_operator: Annotated[
        bool, typer.Option("--as-operator", help="Set the operator's limit, which the tenant cannot change.")
    ] = False,
) -> None:
    """Set a limit. It replaces the one that differs only in its numbers, and takes effect within a second.

    \b
    holdfast limits set "each user: 60 requests per minute"
    holdfast limits set "each user of tool refund: 10 requests per hour, burst 3"
    holdfast limits set "tool search: 5 concurrent calls"
    holdfast limits set "agent support: 20 cost per month, warn at 90%"
    """
    async with reach(invocation) as api:
        stored = await api.call("set_limit", rule=rule, as_operator=as_operator)
    invocation.output.record(stored)
    invocation.output.say(f"Set the limit {stored['rule']}.")


derive(app, "models", "model_usage", table(MODELS, cost=lambda row: f"{row['cost']:.4g}"))


def _used(row: dict[str, Any]) -> str:
    share = 100 * row["used"] / row["amount"]
    return f"{row['used']:.6g} of {row['amount']:.6g} ({share:.0f}%)"


def _state(row: dict[str, Any]) -> str:
    shown = "spent" if row["used"] >= row["amount"] else "warned" if row["warned"] else ""
    if row["resets_at"] is None:
        return shown
    at = f"until {datetime.fromisoformat(row['resets_at']):%Y-%m-%d %H:%M} UTC"
    return f"{shown}, {at}" if shown else at


derive(app, "usage", "limit_usage", table(USAGE, shown=_used, state=_state))
