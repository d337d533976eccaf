"""Dead letters, as PostgreSQL keeps them."""

import asyncio

import pytest

from holdfast.bus import DeadLetter, subscription
from holdfast.bus.positions import MAX_ERROR
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine

pytestmark = pytest.mark.req("BUS-04")


async def buried(engine: Engine, value: object, error: str, *, key: str | None = None) -> DeadLetter:
    """Fail at a record until it is given up."""
    await engine.log.create("orders", partitions=1)
    await engine.log.publish("orders", value=value, key=key)
    async with engine.log.subscribe(["orders"], group="billing") as records, asyncio.timeout(30):
        while not (letters := await engine.dead_letters.list()):
            await records.fail(await anext(records), error)
    return letters[0]


def give_up(*_: object, **__: object) -> bool:
    """At once."""
    return True


@pytest.fixture
def impatient(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried twice."""
    monkeypatch.setattr(subscription, "is_hopeless", give_up)


@pytest.mark.usefixtures("impatient")
async def test_a_dead_letter_holds_what_postgresql_cannot_as_it_was(engine: Engine) -> None:
    letter = await buried(engine, {"v": "\0 \ud83d"}, "an error\0\ud83d", key="\0key")

    assert (letter.value, letter.error, letter.key) == ({"v": "\0 \ud83d"}, "an error\0\ud83d", "\0key")
    assert (letter.attempts, letter.correlation_id) == (1, None)


@pytest.mark.usefixtures("impatient")
async def test_a_long_error_is_kept_as_far_as_it_helps(engine: Engine) -> None:
    letter = await buried(engine, 1, "x" * 1_000_000)

    assert letter.error == "x" * MAX_ERROR


@pytest.mark.usefixtures("impatient")
async def test_a_dead_letter_outlives_its_topic(engine: Engine) -> None:
    letter = await buried(engine, 1, "no")

    await engine.log.remove("orders")

    assert await engine.dead_letters.get(letter.id) == letter


async def test_a_page_has_a_number_of_letters_that_makes_sense(engine: Engine) -> None:
    with pytest.raises(InvalidInput):
        await engine.dead_letters.list(limit=-1)
    assert await engine.dead_letters.list(limit=0) == []
