"""`holdfast topics`: manage topics, records and consumer groups."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.api import Api, reach
from holdfast.cli.invocation import Invocation, command, group
from holdfast.cli.output import printable, write
from holdfast.cli.urls import address, given
from holdfast.core.errors import InvalidInput

app = group("Manage topics of the log: publish and read records, and show and reset consumer groups.")

PAGE = 1000
POLL = 0.5  # seconds between two polls for new records
COLUMNS = {
    "name": "TOPIC",
    "partitions": "PARTITIONS",
    "records": "RECORDS",
    "rate": "PER SECOND",
    "oldest": "OLDEST",
    "created_at": "MADE",
}
LAG_COLUMNS = {
    "group": "GROUP",
    "topic": "TOPIC",
    "partition": "PARTITION",
    "position": "POSITION",
    "end": "END",
    "lag": "LAG",
    "oldest": "WAITING SINCE",
    "owner": "READ BY",
    "attempts": "FAILED",
    "error": "ERROR",
}

Name = Annotated[str, typer.Argument(metavar="NAME")]
Partition = Annotated[int | None, typer.Option(metavar="N", min=0, help="Partition. [default: all]")]
Offset = Annotated[int | None, typer.Option(metavar="N", min=0, help="Start at this offset.")]
At = Annotated[str | None, typer.Option(metavar="TIME", help="Start at this time, such as 2026-01-31T12:00.")]


@command(app)
async def ls(invocation: Invocation) -> None:
    """List topics."""
    async with reach(invocation) as api:
        found = (await api.get("/api/topics"))["topics"]
    if not invocation.json:
        found = [{**topic, "rate": f"{topic['per_second']:.2f}"} for topic in found]
    invocation.output.rows(found, COLUMNS)


@command(app)
async def create(
    invocation: Invocation,
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Number of partitions, which never changes. [default: the setting bus.partitions]"
        ),
    ] = None,
) -> None:
    """Create a topic, unless it exists."""
    async with reach(invocation) as api:
        made = await api.post("/api/topics", given(name=name, partitions=partitions))
    invocation.output.record(made)
    invocation.output.say(f"There is a topic {made['name']} with {made['partitions']} partitions.")


@command(app)
async def rm(invocation: Invocation, name: Name) -> None:
    """Delete a topic permanently. Its records and the positions of its groups are deleted, dead letters remain."""
    async with reach(invocation) as api:
        await api.delete(address("topics", name))
    invocation.output.record({"name": name})
    invocation.output.say(f"Removed the topic {name}.")


@command(app)
async def publish(
    invocation: Invocation,
    name: Name,
    value: Annotated[str, typer.Argument(metavar="JSON", help="Value; - reads it from stdin.")],
    key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Key. Records with the same key stay in order.")
    ] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME=TEXT", help="Header. Can be repeated.")] = None,
    id: Annotated[UUID | None, typer.Option(metavar="UUID", help="Id of the record. [default: generated]")] = None,
) -> None:
    """Publish a record and print its partition and offset.

    \b
    holdfast topics publish orders '{"parcel": 7}' --key ann
    """
    body = given(key=key, id=None if id is None else str(id), headers=dict(map(_header, header or ())))
    async with reach(invocation) as api:
        record = await api.post(address("topics", name, "records"), {"value": parsed(value), **body})
    place = f"{record['partition']}/{record['offset']}"
    invocation.output.value(place, record)


@command(app)
async def tail(
    invocation: Invocation,
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new records and print them; Ctrl-C exits.")
    ] = False,
    partition: Partition = None,
    offset: Offset = None,
    at: At = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            metavar="N",
            min=1,
            help="Maximum number of records. [default: 10; with --offset or --at all]",
        ),
    ] = None,
) -> None:
    """Print the newest records, or those from an offset or a time. Consumer groups are not affected.

    A line has partition/offset, time, key and value. With --json, it is the whole record.

    \b
    holdfast topics tail orders -f
    holdfast topics tail orders --at 2026-01-31T12:00
    """
    start = given(partition=partition, offset=offset, at=None if at is None else moment(at))
    if offset is None and at is None:
        start |= {"newest": "true", "limit": min(limit or 10, PAGE)}
        limit = None
    async with reach(invocation) as api:
        async for record in _records(api, name, start, limit=limit, follow=follow):
            if invocation.json:
                invocation.output.line(record)
            else:
                write(sys.stdout, shown(record))


@command(app)
async def lag(
    invocation: Invocation,
    group: Annotated[str | None, typer.Option(metavar="NAME", help="Consumer group. [default: all]")] = None,
) -> None:
    """Show the lag of consumer groups, by partition."""
    async with reach(invocation) as api:
        found = await api.get(address("groups", group=group))
    invocation.output.rows(found["partitions"], LAG_COLUMNS)


@command(app)
async def reset(
    invocation: Invocation,
    group: Annotated[str, typer.Argument(metavar="GROUP")],
    name: Annotated[str, typer.Argument(metavar="TOPIC")],
    partition: Partition = None,
    offset: Offset = None,
    at: At = None,
    end: Annotated[bool, typer.Option("--end", help="Go to the end, after the last record.")] = False,
) -> None:
    """Reset a consumer group to a position in a topic. The default is the start. The group must have no consumers.

    \b
    holdfast topics reset billing orders --at 2026-01-31T12:00
    """
    body = given(topic=name, partition=partition, offset=offset, at=None if at is None else moment(at))
    async with reach(invocation) as api:
        done = await api.post(address("groups", group, "reset"), {**body, "end": end})
    invocation.output.record(done)
    told = ", ".join(f"{number} at {position}" for number, position in done["positions"].items())
    invocation.output.say(f"{group} goes on in {name} with partition {told}.")


def shown(record: dict[str, Any]) -> str:
    """Format a record as one line: its position, time, key and value."""
    at = datetime.fromisoformat(record["at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    key = "-" if record["key"] is None else json.dumps(record["key"], ensure_ascii=False)
    value = json.dumps(record["value"], ensure_ascii=False)
    return printable(f"{record['partition']}/{record['offset']}  {at}  {key}  {value}")


def parsed(text: str) -> Any:
    """Parse a value as JSON; `-` reads it from stdin."""
    try:
        return json.loads(sys.stdin.buffer.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the value is no JSON", why=str(error), next="Text needs quotes: '\"hello\"'.") from None


def moment(text: str) -> str:
    """Parse a time for the API. A time without a time zone is in this machine's time zone."""
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text[:80]!r} is no time", next="Write it like 2026-01-31T12:00 or 2026-01-31.") from None


async def _records(
    api: Api, topic: str, start: dict[str, Any], *, limit: int | None, follow: bool
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the stored records, sorted by time within a page. With `follow`, yield new records after them."""
    left = limit
    asked = {"limit": PAGE, **start}
    more = True
    while more:
        page = await api.get(address("topics", topic, "records", **asked))
        records = sorted(page["records"], key=lambda record: (record["at"], record["partition"], record["offset"]))
        for record in records[:left]:
            yield record
        left = None if left is None else left - len(records)
        more = (left is None or left > 0) and (follow or (bool(records) and "newest" not in asked))
        asked = {"limit": PAGE, "positions": ",".join(f"{p}:{offset}" for p, offset in page["next"].items())}
        if more and not records:
            await asyncio.sleep(POLL)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput(f"{text[:80]!r} is no header", next="Write it like name=text.")
    return name, value
