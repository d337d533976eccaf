"""`holdfast audit`: shows, verifies and exports who called and changed what, and erases personal data from it."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.operation_commands import derive, message, moment
from holdfast.cli.output import printable, write
from holdfast.core.errors import HoldfastError, InvalidInput

app = group("Show, verify and export the audit: who called and changed what, with which outcome.")

PAGE = 200
POLL = 0.5  # seconds between two looks for new entries
PART = 50_000  # entries that are verified per request
SHOWN_TARGET = 60

derive(app, "erase", "erase_audit", message("Erased the personal data of {user} in {erased} entries."))


@command(app)
async def tail(
    invocation: Invocation,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new entries and print them; Ctrl-C exits.")
    ] = False,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only entries of this user.")] = None,
    action: Annotated[str | None, typer.Option(metavar="NAME", help="Only this action, such as create_key.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only done, failed, refused, waiting, cancelled or unknown."),
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Only calls of this tool.")] = None,
    target: Annotated[str | None, typer.Option(metavar="NAME", help="Only entries about this object.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only entries from this time on.", parser=moment)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=PAGE, help="Number of entries.")] = 20,
) -> None:
    """Print the newest entries, oldest first.

    A line has the number, the time, the outcome, the user, the action and its target. With --json, it is the whole
    entry.

    \b
    holdfast audit tail -f --outcome refused
    holdfast audit tail --tool github_delete_repository --since 2026-01-31
    """
    if tool is not None:
        action, target = "tool.call", tool
    given = {"user": user, "action": action, "outcome": outcome, "target": target, "since": since}
    query = {name: value for name, value in given.items() if value is not None}
    async with reach(invocation) as api:
        # The place to go on from comes first: what is recorded meanwhile is shown by both, and printed once.
        after: int = (await api.call("follow_audit"))["after"] if follow else 0
        newest = (await api.call("list_audit", limit=limit, **query))["entries"]
        last = 0
        for entry in reversed(newest):
            last = entry["seq"]
            _show(invocation, entry)
        while follow:
            found = await api.call("follow_audit", after=max(after, last), limit=PAGE, **query)
            for entry in found["entries"]:
                _show(invocation, entry)
            after = found["after"]
            if not found["entries"]:
                await asyncio.sleep(POLL)


@command(app)
async def verify(
    invocation: Invocation,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Exported file to verify, without a server.", dir_okay=False)
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with published ends of the chain: see audit.publish_file.", dir_okay=False
        ),
    ] = None,
) -> None:
    """Verify that no entry was changed, removed or inserted. Exits with 1 and names the place if one was.

    The hashes prove the entries to each other. Only a published end of the chain, kept outside of the database, shows
    that the whole chain was not written anew.

    \b
    holdfast audit verify --heads /mnt/worm/heads.jsonl
    holdfast audit export audit.jsonl && holdfast audit verify audit.jsonl
    """
    with invocation.output.progress() as progress:
        if file is None:
            async with reach(invocation) as api:
                found = await verify_chain(api, heads, progress)
        else:
            found = await asyncio.to_thread(_verify_file, file, heads, progress)
    fault = found.get("fault")
    if fault is not None:
        raise HoldfastError(
            f"the audit is not as it was recorded: {fault['kind']} at the entry {fault['seq']}",
            why=fault["what"],
            next="Compare it with an exported file or a backup.",
            fault=fault,
        )
    invocation.output.record(found)
    done = found["progress"]
    erased = f" The personal data of {done['erased']} was erased." if done["erased"] else ""
    begins = f" It begins after the entry {done['checkpoint'].partition(':')[0]}." if done["checkpoint"] else ""
    invocation.output.say(f"{done['verified']} entries are as they were recorded.{erased}{begins}")


@command(app)
async def export(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; - writes to stdout.", allow_dash=True)],
) -> None:
    """Export the audit as JSON lines, with the hashes that prove it. The file verifies without a server.

    \b
    holdfast audit export audit.jsonl
    """
    lines = 0
    try:
        out = sys.stdout.buffer if str(file) == "-" else file.open("wb")
    except OSError as error:
        raise InvalidInput(f"cannot write {file}", why=str(error), next="Choose another file.") from None
    async with reach(invocation) as api:
        with invocation.output.progress() as progress:

            def pass_on(part: bytes) -> None:
                nonlocal lines
                out.write(part)
                lines += part.count(b"\n")
                progress(f"{max(0, lines - 2)} entries")

            try:
                await api.download("export_audit", pass_on)
            finally:
                out.flush() if out is sys.stdout.buffer else out.close()
    invocation.output.say(f"Exported {lines - 2} entries.")


def format_entry(entry: dict[str, Any]) -> str:
    """Format an entry as one line."""
    at = datetime.fromisoformat(entry["at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    user = entry.get("user") or ("(erased)" if entry.get("erased") else "-")
    if entry.get("actor"):
        user = f"{entry['actor']} as {user}"
    if entry.get("agent"):
        user = f"{user} by {entry['agent']}"
    details: dict[str, Any] = entry.get("details") or {}
    target = entry["target"] or ", ".join(f"{name}={value}" for name, value in details.items())
    if len(target) > SHOWN_TARGET:
        target = target[:SHOWN_TARGET] + "…"
    why = " ".join(filter(None, (entry.get("code"), entry.get("rule"))))
    reason = f"  ({why})" if why else ""
    return printable(f"{entry['seq']}  {at}  {entry['outcome']:<9}  {user}  {entry['action']}  {target}{reason}")


def _show(invocation: Invocation, entry: dict[str, Any]) -> None:
    if invocation.json:
        invocation.output.line(entry)
    else:
        write(sys.stdout, format_entry(entry))


async def verify_chain(api: Api, heads: Path | None, progress: Callable[[str], None]) -> dict[str, Any]:
    """Verify the whole chain of the audit, part by part, with published heads from a file if there is one."""
    found: dict[str, Any] = await api.call("verify_audit", limit=1)  # says whose chain it is, and where it begins
    if heads is None:
        published: Mapping[int, bytes] = {}
    else:
        published = await asyncio.to_thread(_published, heads, UUID(found["tenant_id"]))
    newest = max(published, default=0)
    seq = begins = _beginning(found)
    body: dict[str, Any] = {"limit": PART}
    while True:
        # Only those in this part, and the newest: it has to be reached.
        given = [n for n in published if seq < n <= seq + PART or n == newest]
        body["heads"] = [{"seq": n, "hash": published[n].hex()} for n in given]
        found = await api.call("verify_audit", **body)
        if found["fault"] is None and _beginning(found) != begins:  # retention dropped entries: begin after them
            seq = begins = _beginning(found)
            body.pop("progress", None)
            continue
        if found["complete"] or found["fault"] is not None:
            return found
        body["progress"], seq = found["progress"], found["progress"]["seq"]
        progress(f"{seq} of {found['end']} entries")


def _beginning(found: dict[str, Any]) -> int:
    return int(found["progress"]["checkpoint"].partition(":")[0] or 0)


def _verify_file(file: Path, heads: Path | None, progress: Any) -> dict[str, Any]:
    import msgspec

    from holdfast.audit.export_file import verify_lines

    try:
        with file.open("rb") as lines:
            found = verify_lines(
                lines,
                heads_of=lambda tenant: {} if heads is None else _published(heads, tenant),
                on_progress=lambda count: progress(f"{count} entries"),
            )
    except OSError as error:
        raise InvalidInput(f"cannot read {file}", why=str(error), next="Give an exported file.") from None
    return msgspec.to_builtins(found)


def _published(file: Path, tenant: UUID) -> Mapping[int, bytes]:
    from holdfast.audit.heads import read_heads

    try:
        with file.open("rb") as lines:
            return read_heads(lines, tenant)
    except OSError as error:
        raise InvalidInput(f"cannot read {file}", why=str(error), next="Give a file with published heads.") from None
