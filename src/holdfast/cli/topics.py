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
from holdfast.cli.operation_commands import Fields, derive, message, moment, table
from holdfast.cli.output import printable, write
from holdfast.core.errors import InvalidInput

app = group("Manage topics of the log: publish and read records, and show and reset consumer groups.")

PAGE = 1000
POLL = 0.5  # seconds between two polls for new records
COLUMNS = ["name", "partitions", "records", "per_second", "oldest", "created_at"]
LAG_COLUMNS = ["group", "topic", "partition", "position", "end", "lag", "oldest", "owner", "attempts", "error"]

Name = Annotated[str, typer.Argument(metavar="NAME")]


def _positions(done: Fields) -> str:
    positions = ", ".join(f"partition {number} at {position}" for number, position in done["positions"].items())
    return f"{done['group']} continues in {done['topic']} with {positions}."


derive(app, "ls", "list_topics", table(COLUMNS, per_second=lambda topic: f"{topic['per_second']:.2f}"))
derive(app, "create", "create_topic", message("The topic {name} has {partitions} partitions."))
derive(app, "rm", "remove_topic", message("Removed the topic {name}."))
derive(app, "lag", "list_lag", table(LAG_COLUMNS))
derive(
    app,
    "reset",
    "reset_group",
    message(_positions),
    help="""Reset a consumer group to a position in a topic. The default is the start. The group must have no consumers.

    \b
    holdfast topics reset billing orders --at 2026-01-31T12:00
    """,
)


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
    sent, headers = parse_value(value), dict(map(_header, header or ()))
    async with reach(invocation) as api:
        record = await api.call("publish_record", name=name, value=sent, key=key, id=id, headers=headers)
    place = f"{record['partition']}/{record['offset']}"
    invocation.output.value(place, record)


@command(app)
async def tail(
    invocation: Invocation,
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for new records and print them; Ctrl-C exits.")
    ] = False,
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="Partition. [default: all]")] = None,
    offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="Start at this offset.")] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start at this time, such as 2026-01-31T12:00.", parser=moment)
    ] = None,
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
    start: dict[str, Any] = {"partition": partition, "offset": offset, "at": at}
    if offset is None and at is None:
        start |= {"newest": True, "limit": min(limit or 10, PAGE)}
        limit = None
    async with reach(invocation) as api:
        async for record in _records(api, name, start, limit=limit, follow=follow):
            if invocation.json:
                invocation.output.line(record)
            else:
                write(sys.stdout, format_record(record))


def format_record(record: dict[str, Any]) -> str:
    """Format a record as one line: its position, time, key and value."""
    at = datetime.fromisoformat(record["at"]).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    key = "-" if record["key"] is None else json.dumps(record["key"], ensure_ascii=False)
    value = json.dumps(record["value"], ensure_ascii=False)
    return printable(f"{record['partition']}/{record['offset']}  {at}  {key}  {value}")


def parse_value(text: str) -> Any:
    """Parse a value as JSON; `-` reads it from stdin."""
    try:
        return json.loads(sys.stdin.buffer.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("the value is not JSON", why=str(error), next="Put text in quotes: '\"hello\"'.") from None


async def _records(
    api: Api, topic: str, start: dict[str, Any], *, limit: int | None, follow: bool
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the stored records, sorted by time within a page. With `follow`, yield new records after them."""
    left = limit
    query = {"limit": PAGE, **start}
    more = True
    while more:
        page = await api.call("read_records", name=topic, **query)
        records = sorted(page["records"], key=lambda record: (record["at"], record["partition"], record["offset"]))
        for record in records[:left]:
            yield record
        left = None if left is None else left - len(records)
        more = (left is None or left > 0) and (follow or (bool(records) and "newest" not in query))
        query = {"limit": PAGE, "positions": ",".join(f"{p}:{offset}" for p, offset in page["next"].items())}
        if more and not records:
            await asyncio.sleep(POLL)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput(f"{text[:80]!r} is not a header", next="Write it like name=text.")
    return name, value
