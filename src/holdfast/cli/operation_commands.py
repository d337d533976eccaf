"""Commands that are derived from operations of the HTTP API.

Required inputs of the operation are arguments of the command, all others are options. Types, ranges, choices, defaults
and help come from the operation. The command calls it and shows the result.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import typer

from holdfast.cli.api import reach
from holdfast.cli.ids import Id, Kind, shortened_ids, whole_id
from holdfast.cli.invocation import Invocation, command
from holdfast.cli.operations import Input, operation
from holdfast.cli.output import printable, write
from holdfast.core.errors import InvalidInput

Fields = dict[str, Any]
Columns = Sequence[str] | Mapping[str, str]  # fields, with their headings if these differ
Show = Callable[[Invocation, Fields, Fields], None]  # of the arguments and the response

NEVER_OFFERED = frozenset({"cursor", "version"})  # a command reads one page, and changes the current version
LARGEST_SHOWN = 1_000_000  # a larger limit is that of the database, and the server checks it

# Resources whose ids can be shortened to a unique prefix.
KINDS: Mapping[str, Kind] = {
    "/api/runs/{id}": "run",
    "/api/approvals/{id}": "approval",
    "/api/executions/{id}": "execution",
    "/api/memories/{id}": "memory",
    "/api/research/{id}": "research",
    "/api/dead-letters/{id}": "dead_letter",
}


def derive(
    app: typer.Typer,
    name: str,
    of: str,
    show: Show,
    *,
    help: str | None = None,
    without: Collection[str] = (),
    arguments: Collection[str] = (),
    fixed: Fields | None = None,
) -> None:
    """Register a command that calls the operation `of`.

    `without`: inputs that the command does not offer. `arguments`: optional inputs that are arguments, not options.
    `fixed`: inputs with a fixed value.
    """
    target, kind = operation(of), _kind(of)
    hidden = {*without, *(fixed or ()), *NEVER_OFFERED}

    async def run(invocation: Invocation, **given: Any) -> None:
        async with reach(invocation, of_a_tenant=target.needs != "operator") as api:
            inputs = {name: value for name, value in {**(fixed or {}), **given}.items() if value is not None}
            if kind is not None:
                inputs["id"] = str(await whole_id(api, kind, given["id"]))
            found = await api.call(of, **inputs)
        show(invocation, inputs, found)

    first = inspect.Parameter("invocation", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Invocation)
    options = [
        parameter(each, about, argument=about.required or each in arguments, shortened=kind is not None)
        for each, about in target.inputs.items()
        if each not in hidden
    ]
    run.__signature__ = inspect.Signature([first, *options])  # type: ignore[attr-defined]
    run.__name__ = name
    run.__doc__ = help or target.summary
    command(app, name)(run)


def parameter(name: str, about: Input, *, argument: bool, shortened: bool = False) -> inspect.Parameter:
    """Return the parameter of a command for an input. `shortened`: an id can be shortened."""
    if about.type == "id" and argument and shortened:
        annotation: Any = Id
    elif argument:
        shown = "|".join(about.choices) or name.upper()
        annotation = Annotated[_type(about), typer.Argument(metavar=shown, help=about.help or None, **_limits(about))]
    elif about.type == "flag":
        annotation = Annotated[bool, typer.Option(f"--{name.replace('_', '-')}", help=about.help)]
    else:
        annotation = Annotated[
            _type(about), typer.Option(metavar=_METAVARS.get(about.type), help=about.help, **_limits(about))
        ]
    default = inspect.Parameter.empty if about.required else about.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def moment(text: str) -> str:
    """Parse a time for the API. A time without a time zone is in this machine's time zone."""
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{text[:80]!r} is not a time", next="Write it like 2026-01-31T12:00 or 2026-01-31."
        ) from None


_TYPES: Mapping[str, Any] = {"text": str, "integer": int, "number": float, "flag": bool, "id": UUID, "time": str}
_METAVARS = {"text": "TEXT", "integer": "N", "number": "N", "id": "ID", "time": "TIME"}


def _type(about: Input) -> Any:
    kind: Any = Literal[tuple(about.choices)] if about.type == "choice" else _TYPES[about.type]
    return kind if about.required or about.default is not None else kind | None


def _limits(about: Input) -> dict[str, Any]:
    if about.type == "time":
        return {"parser": moment}
    return {"min": about.min, "max": None if about.max is None or about.max > LARGEST_SHOWN else about.max}


def _kind(of: str) -> Kind | None:
    return next((kind for path, kind in KINDS.items() if operation(of).path.startswith(path)), None)


def table(
    columns: Columns,
    *,
    found: Columns | None = None,
    ids: Sequence[str] = (),
    cut: Sequence[str] = (),
    **computed: Callable[[Fields], object],
) -> Show:
    """Show the list of a response as a table. `found` are the columns for the results of a search.

    `ids`: columns with ids to shorten. `cut`: columns to cut on a terminal. `computed`: functions of a row.
    """

    def show(invocation: Invocation, inputs: Fields, response: Fields) -> None:
        rows = next(cast(list[Fields], value) for value in response.values() if isinstance(value, list))
        shown = [{**row, **{name: value_of(row) for name, value_of in computed.items()}} for row in rows]
        by = columns
        if found is not None and "query" in inputs:
            by, shown = found, [{**row, "score": f"{row['score']:.4f}"} for row in shown]
        invocation.output.rows(rows if invocation.json else shortened_ids(shown, *ids), _headings(by), cut=cut)
        say_incomplete(invocation, response, len(rows))

    return show


def _headings(columns: Columns) -> Mapping[str, str]:
    if isinstance(columns, Mapping):
        return columns
    return {name: name.removesuffix("_at").replace("_", " ").upper() for name in columns}


def message(text: str | Callable[[Fields], str]) -> Show:
    """Say a message about the arguments and the response. As JSON, print the response, or else the arguments."""

    def show(invocation: Invocation, inputs: Fields, found: Fields) -> None:
        fields = {**inputs, **found}
        invocation.output.record(found or inputs)
        invocation.output.say(text.format(**fields) if isinstance(text, str) else text(fields))

    return show


def page(shown: Callable[[Fields], str]) -> Show:
    """Show the response as a text."""

    def show(invocation: Invocation, inputs: Fields, found: Fields) -> None:
        if invocation.json:
            invocation.output.record(found)
        else:
            write(sys.stdout, printable(shown(found)))

    return show


def say_incomplete(invocation: Invocation, found: Fields, count: int) -> None:
    """Say if a list is incomplete, or if a search used words only."""
    if found.get("cursor") is not None:
        invocation.output.say(f"There are more than these {count}. See --limit.")
    if found.get("reduced"):
        invocation.output.say(found["reduced"])
