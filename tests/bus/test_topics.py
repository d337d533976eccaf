"""Topics: their names, and who makes one first."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus.topics import group_name, topic_name
from holdfast.core.errors import Conflict, InvalidInput
from holdfast.engine import Engine

pytestmark = pytest.mark.req("BUS-01")


@given(st.from_regex(r"[A-Za-z0-9_-]{1,150}", fullmatch=True))
def test_letters_digits_hyphens_and_underscores_make_a_name(name: str) -> None:
    assert (topic_name(name), group_name(name)) == (name, name)


@given(
    st.text(max_size=200).filter(
        lambda name: not name.isascii() or not name.replace("-", "").replace("_", "").isalnum()
    )
)
def test_nothing_else_does(name: str) -> None:
    if name and name.isascii() and all(letter.isalnum() or letter in "-_" for letter in name):
        return
    with pytest.raises(InvalidInput, match="is not a valid name for a topic"):
        topic_name(name)
    with pytest.raises(InvalidInput, match="is not a valid name for a group"):
        group_name(name)


@pytest.mark.parametrize("name", ["orders\n", "orders\0", "acme.orders", "..", "t" * 151, "ordérs"])
def test_what_looks_almost_like_a_name_is_none(name: str) -> None:
    with pytest.raises(InvalidInput):
        topic_name(name)
    with pytest.raises(InvalidInput):
        group_name(name)


async def test_of_many_who_make_a_topic_one_does_and_all_agree(engine: Engine) -> None:
    made = await asyncio.gather(*(engine.log.create("orders") for _ in range(20)))

    assert set(made) == {16}
    assert [(topic.name, topic.partitions, topic.records) for topic in await engine.log.topics()] == [("orders", 16, 0)]


async def test_of_many_who_want_different_numbers_the_first_decides(engine: Engine) -> None:
    outcomes = await asyncio.gather(
        *(engine.log.create("orders", partitions=number) for number in (3, 4, 5, 6)), return_exceptions=True
    )

    made = [outcome for outcome in outcomes if isinstance(outcome, int)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert (len(made), len(refused)) == (1, 3)
    assert {conflict.current for conflict in refused} == {await engine.log.create("orders")} == set(made)


async def test_a_topic_that_was_rolled_back_was_never_there(engine: Engine) -> None:
    with pytest.raises(KeyError):  # noqa: PT012 - a transaction is several statements
        async with engine.transaction() as tx:
            await engine.log.create("orders", tx=tx)
            raise KeyError

    assert await engine.log.topics() == []
    assert await engine.log.create("orders", partitions=2) == 2
