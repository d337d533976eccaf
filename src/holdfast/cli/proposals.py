"""`holdfast sources proposals`, `approve` and `reject`: decide about held definitions of tools."""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation
from holdfast.cli.operation_commands import Fields
from holdfast.cli.output import printable, write
from holdfast.core.errors import Conflict, InvalidInput, NotFound

SHORT = 12  # characters of a hash that are shown
FEWEST = 8  # characters of a hash that are enough
MOST = 1000

Name = Annotated[str, typer.Argument(metavar="NAME")]
Source = Annotated[str | None, typer.Argument(metavar="[NAME]", help="Source. [default: all]")]
Tools = Annotated[list[str] | None, typer.Argument(metavar="[TOOL]...", help="Tools. [default: all that are held]")]
Seen = Annotated[
    str | None,
    typer.Option("--hash", metavar="HASH", help="Hash of what you have read, as `proposals` prints it."),
]


async def proposals(invocation: Invocation, name: Source = None) -> None:
    """Show definitions of tools that are held until somebody approves them, with the differences."""
    async with reach(invocation) as api:
        found = await _listed(api, name)
    invocation.output.record({"proposals": found})
    if invocation.json:
        return
    if not found:
        invocation.output.say("No definition is held.")
    for source in sorted({each["source"] for each in found}):
        of_source = [each for each in found if each["source"] == source]
        write(sys.stdout, printable("\n\n".join(map(format_proposal, of_source))))
        invocation.output.say(
            f"Approve what you have read: `holdfast sources approve {source} --hash {digest(of_source)}`."
        )


async def approve(invocation: Invocation, name: Name, tools: Tools = None, hash: Seen = None) -> None:
    """Approve held definitions of tools: they are used from now on.

    Without --hash, the command shows the differences and asks. With it, it approves them only if they are still the
    ones that you have read.

    \b
    holdfast sources proposals shop
    holdfast sources approve shop get_orders --hash 3fa9c1d25b07
    """
    await _decide(invocation, "approve", name, tools, hash)


async def reject(invocation: Invocation, name: Name, tools: Tools = None, hash: Seen = None) -> None:
    """Reject held definitions of tools. The tools stay held until their definitions change."""
    await _decide(invocation, "reject", name, tools, hash)


def digest(proposals: Sequence[Fields]) -> str:
    """Return the short hash of one definition, or of several."""
    hashes = sorted(each["hash"] for each in proposals)
    return (hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest())[:SHORT]


def format_proposal(proposal: Fields) -> str:
    """Format a proposal for the terminal: what it is about, the warnings, the differences."""
    change = f": {', '.join(proposal['what'])}" if proposal["what"] else ""
    state = " (rejected)" if proposal["state"] == "rejected" else ""
    lines = [f"{proposal['change']} {proposal['tool']}{change}{state}", f"hash {proposal['hash'][:SHORT]}"]
    lines += [f"warning: {each['code']} in {each['where']}: {each['what']}" for each in proposal["warnings"]]
    return "\n".join([*lines, *(f"  {line}" for line in proposal["diff"].splitlines())])


async def _decide(
    invocation: Invocation, decision: str, name: str, tools: Iterable[str] | None, seen: str | None
) -> None:
    async with reach(invocation) as api:
        found = await _listed(api, name)
        wanted = set(tools or ())
        chosen = [each for each in found if not wanted or each["tool"] in wanted]
        if missing := wanted - {each["tool"] for each in chosen}:
            raise NotFound(f"no definition is held of: {', '.join(sorted(missing))[:300]}")
        if not chosen:
            raise NotFound(f"no definition of the source {name} is held")
        if seen is not None:
            _check_seen(name, chosen, seen)
        elif not _asks(invocation, decision, chosen):
            return
        decided = await api.call(
            "decide_proposals", name=name, decision=decision, tools={each["tool"]: each["hash"] for each in chosen}
        )
    invocation.output.record(decided)
    count = len(decided["tools"])
    invocation.output.say(f"{decided['state'].capitalize()} {count} definition{'' if count == 1 else 's'}.")


def _check_seen(name: str, chosen: Sequence[Fields], seen: str) -> None:
    if len(seen) < FEWEST or not digest(chosen).startswith(seen[:SHORT]):
        raise Conflict(
            "nothing was decided",
            expected=0,
            current=1,
            why=f"the held definitions have the hash {digest(chosen)}, not {seen:.80}",
            next=f"Read them again: `holdfast sources proposals {name}`.",
        )


def _asks(invocation: Invocation, decision: str, chosen: Sequence[Fields]) -> bool:
    """Show the definitions, and return whether the person at the terminal confirms."""
    if invocation.json or not sys.stdin.isatty():
        next = "Read them with `holdfast sources proposals`, and pass the hash that it prints: --hash HASH."
        raise InvalidInput("nothing was decided", why="it is not said which definitions you have read", next=next)
    write(sys.stdout, printable("\n\n".join(map(format_proposal, chosen))))
    return typer.confirm(f"{decision.capitalize()} {len(chosen)}?")


async def _listed(api: Api, name: str | None) -> list[Fields]:
    inputs = {"limit": MOST} if name is None else {"limit": MOST, "source": name}
    return (await api.call("list_proposals", **inputs))["proposals"]
