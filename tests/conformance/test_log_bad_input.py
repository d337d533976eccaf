"""Bad input: each gets an error that says what is wrong and what to do, and everything works as before."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import pytest

from holdfast.bus import Log
from holdfast.core.errors import Broken, HoldfastError, InvalidInput, NotFound, TooLarge
from holdfast.engine import Engine
from tests.conformance.consumers import done, publish, values

pytestmark = pytest.mark.req("BUS-01")

Act = Callable[[Log], Awaitable[object]]
anything = cast(Any, object())


async def subscribed(log: Log, *topics: str, group: str | None = None) -> None:
    """Subscribe, and leave at once."""
    async with log.subscribe(topics, group=group):
        pass


async def read(log: Log, topic: str, **options: Any) -> None:
    """Read to the end."""
    async for _ in log.read(topic, **options):
        pass


async def still_works(log: Log, topic: str) -> None:
    """Publish a record, and have it."""
    async with log.subscribe([topic], group=f"after-{uuid4().hex}", start="end") as records:
        await publish(log, topic, ["good"])
        assert values(await done(records, 1)) == ["good"]


BAD: list[tuple[str, Act, type[HoldfastError], str]] = [
    (
        "publish to no topic",
        lambda log: log.publish("nowhere", value=1),
        NotFound,
        r"topic nowhere does not exist.*log\.create",
    ),
    (
        "subscribe to no topic",
        lambda log: subscribed(log, "nowhere", group="g"),
        NotFound,
        "topic nowhere does not exist",
    ),
    (
        "one of two is no topic",
        lambda log: subscribed(log, "line", "nowhere", group="g"),
        NotFound,
        "topic nowhere does not exist",
    ),
    ("follow no topic", lambda log: subscribed(log, "nowhere"), NotFound, "topic nowhere does not exist"),
    ("subscribe to nothing", lambda log: subscribed(log, group="g"), InvalidInput, "Name at least one topic"),
    ("read no topic", lambda log: read(log, "nowhere"), NotFound, "topic nowhere does not exist"),
    ("remove no topic", lambda log: log.remove("nowhere"), NotFound, "topic nowhere does not exist"),
    ("reset no topic", lambda log: log.reset("g", "nowhere"), NotFound, "topic nowhere does not exist"),
    (
        "key is a number",
        lambda log: log.publish("line", key=cast(Any, 7), value=1),
        InvalidInput,
        "a int, not a string",
    ),
    (
        "key is bytes",
        lambda log: log.publish("line", key=cast(Any, b"k"), value=1),
        InvalidInput,
        "bytes, not a string",
    ),
    ("value is no JSON", lambda log: log.publish("line", value=anything), InvalidInput, "cannot be encoded as JSON"),
    ("value holds a set of objects", lambda log: log.publish("line", value={"a": [anything]}), InvalidInput, "as JSON"),
    (
        "header is a number",
        lambda log: log.publish("line", value=1, headers=cast(Any, {"n": 1})),
        InvalidInput,
        "'n' or its",
    ),
    (
        "header without a name",
        lambda log: log.publish("line", value=1, headers={"": "v"}),
        InvalidInput,
        "is not a string",
    ),
    ("10 MB", lambda log: log.publish("line", value="x" * 10_000_000), TooLarge, "too large.*10000"),
    ("2 MB", lambda log: log.publish("line", value="x" * 2_000_000), TooLarge, r"bus\.max_record_bytes.*in a node"),
    (
        "2 MB of headers",
        lambda log: log.publish("line", value=1, headers={"h": "x" * 2_000_000}),
        TooLarge,
        "too large",
    ),
    ("2 MB of key", lambda log: log.publish("line", key="k" * 2_000_000, value=1), TooLarge, "too large"),
    (
        "topic with a dot",
        lambda log: log.publish("acme.orders", value=1),
        InvalidInput,
        "'acme.orders' is not a valid name for a topic",
    ),
    ("topic without a name", lambda log: log.create(""), InvalidInput, "is not a valid name for a topic"),
    ("topic with a space", lambda log: log.create("my orders"), InvalidInput, "letters, digits, hyphens"),
    ("topic of 151 letters", lambda log: log.create("t" * 151), InvalidInput, "up to 150"),
    ("topic is a number", lambda log: log.create(cast(Any, 7)), InvalidInput, "7 is not a valid name for a topic"),
    ("no partitions", lambda log: log.create("none", partitions=0), InvalidInput, "Use 1 to 1000"),
    ("too many partitions", lambda log: log.create("many", partitions=1001), InvalidInput, "Use 1 to 1000"),
    (
        "another tenant's group",
        lambda log: subscribed(log, "line", group="acme.billing"),
        InvalidInput,
        "groups of other tenants",
    ),
    (
        "the relay's group",
        lambda log: subscribed(log, "line", group=".relay"),
        InvalidInput,
        "is not a valid name for a group",
    ),
    (
        "group without a name",
        lambda log: subscribed(log, "line", group=""),
        InvalidInput,
        "is not a valid name for a group",
    ),
    (
        "reset another tenant's group",
        lambda log: log.reset("acme.billing", "line"),
        InvalidInput,
        "groups of other tenants",
    ),
    ("reset no group", lambda log: log.reset("nobody", "line"), NotFound, "group nobody does not exist"),
    ("negative offset", lambda log: read(log, "line", offset=-1), InvalidInput, "Use 0 or more"),
    ("reset to a negative offset", lambda log: log.reset("g", "line", offset=-5), InvalidInput, "Use 0 or more"),
    ("unknown partition", lambda log: read(log, "line", partition=1), InvalidInput, "no partition 1.*0 to 0"),
    ("negative partition", lambda log: read(log, "line", partition=-1), InvalidInput, "no partition -1"),
    (
        "offset and time",
        lambda log: read(log, "line", offset=1, at=datetime.now(UTC)),
        InvalidInput,
        "Pass only one of",
    ),
    ("offset and end", lambda log: log.reset("g", "line", offset=1, end=True), InvalidInput, "Pass only one of"),
]


@pytest.mark.parametrize(("act", "kind", "told"), [pytest.param(*rest, id=name) for name, *rest in BAD])
async def test_bad_input_is_refused_with_what_to_do_and_everything_works_afterwards(
    log: Log, line: str, act: Act, kind: type[HoldfastError], told: str
) -> None:
    with pytest.raises(HoldfastError, match=f"(?s){told}") as refused:
        await act(log)

    assert type(refused.value) is kind
    assert refused.value.code == kind.code
    assert len(str(refused.value)) < 1000, "what was given is not told back in full"
    await still_works(log, line)


async def test_a_topic_that_is_not_there_fails_the_transaction_that_publishes_to_it(
    engine: Engine, log: Log, line: str
) -> None:
    with pytest.raises(NotFound, match="topic nowhere does not exist"):  # noqa: PT012 - a transaction is several statements
        async with engine.transaction() as tx:
            await log.publish(line, value="with it", tx=tx)
            await log.publish("nowhere", value=1, tx=tx)

    assert [record async for record in log.read(line)] == []
    await still_works(log, line)


async def test_a_bad_record_does_not_take_others_of_its_batch_with_it(log: Log, line: str) -> None:
    outcomes = await asyncio.gather(
        *(log.publish(line if number % 3 else "nowhere", value=number) for number in range(30)), return_exceptions=True
    )

    assert [isinstance(outcome, NotFound) for outcome in outcomes] == [number % 3 == 0 for number in range(30)]
    assert [record.value async for record in log.read(line)] == [number for number in range(30) if number % 3]


async def test_publishing_in_a_transaction_that_has_failed_is_refused(engine: Engine, log: Log, line: str) -> None:
    with pytest.raises(Broken, match="transaction was rolled back"):  # noqa: PT012 - a transaction is several statements
        async with engine.transaction() as tx:
            with pytest.raises(HoldfastError):
                await tx.run("select $1::uuid, 1 / 0")
            with pytest.raises(InvalidInput, match="earlier statement in it failed"):
                await log.publish(line, value=1, tx=tx)

    assert [record async for record in log.read(line)] == []
    await still_works(log, line)


async def test_publishing_in_a_transaction_that_has_ended_is_refused(engine: Engine, log: Log, line: str) -> None:
    async with engine.transaction() as tx:
        await log.publish(line, value=1, tx=tx)

    with pytest.raises(Broken, match="the transaction has ended"):
        await log.publish(line, value=2, tx=tx)

    await still_works(log, line)


async def test_publishing_in_another_tenants_transaction_is_refused(log: Log, line: str, acme: Engine) -> None:
    with pytest.raises(Broken, match="belongs to another tenant"):
        async with acme.transaction() as tx:
            await log.publish(line, value=1, tx=tx)

    assert [record async for record in log.read(line)] == []
    await still_works(log, line)


async def test_a_tenant_that_does_not_exist_has_no_log(engine: Engine) -> None:
    with pytest.raises(NotFound, match="ghost"):
        await engine.tenant("ghost").log.publish("orders", value=1)
