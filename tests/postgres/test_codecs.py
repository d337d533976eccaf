import math
from array import array
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge
from holdfast.core.text import MAX_TEXT_BYTES
from holdfast.postgres.codecs import decode_halfvec, decode_vector, encode_halfvec, encode_vector
from holdfast.postgres.database import Database
from tests.postgres.backends import backend

pytestmark = pytest.mark.req("ENG-08")

BACK = "select $2::{} where $1::uuid is not null"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "NUL \0, half an emoji \ud83d, both halves 😀, \U0010fffe0000",
        {"\0": {"\udc00": [1, 2.5, None, "ü"]}},
        [2**63, -(2**64), 10**400, 0.1, 1e300, 1e16, 5e-324],
        [math.inf, -math.inf, {"inf": "inf"}],
        {"deep": eval("[" * 120 + "]" * 120)},
    ],
)
async def test_json_comes_back_as_it_went_in(database: Database, value: object) -> None:
    found = await database.value(BACK.format("jsonb"), value)

    assert found == value
    assert repr(found) == repr(value)


async def test_a_number_that_is_none_comes_back_as_one(database: Database) -> None:
    found = await database.value(BACK.format("jsonb"), [math.nan, "nan"])

    assert math.isnan(found[0])
    assert found[1] == "nan"


@pytest.mark.parametrize("tenancy", ["connection", "transaction"])
async def test_what_json_cannot_hold_is_refused_by_our_own_rule_and_the_connection_stays_usable(
    database: Database,
) -> None:
    deep: list[Any] = []
    for _ in range(1000):
        deep = [deep]
    pid = await backend(database)

    refusals: dict[str, type[HoldfastError]] = {}
    for value in (deep, object(), "x" * (MAX_TEXT_BYTES + 1)):
        with pytest.raises(HoldfastError) as refused:
            await database.value(BACK.format("jsonb"), value)
        refusals[refused.value.what] = type(refused.value)

    assert refusals == {
        "the JSON value is nested too deeply": InvalidInput,
        "the value cannot be encoded as JSON": InvalidInput,
        "the JSON value is too large": TooLarge,
    }

    assert await backend(database) == pid


async def test_a_uuid_comes_back_as_one(database: Database) -> None:
    ids = [uuid4(), UUID(int=0)]

    assert await database.value(BACK.format("uuid[]"), ids) == ids


@pytest.mark.parametrize("kind", ["vector", "halfvec"])
@pytest.mark.parametrize("values", [[1.0, -0.5, 0.25], (1, 2, 3), array("f", [0.5]), array("d", [0.5, 8192.0])])
async def test_a_vector_comes_back_as_numbers_whatever_held_them(database: Database, kind: str, values: Any) -> None:
    assert await database.value(BACK.format(kind), values) == list(values)


@pytest.mark.parametrize("kind", ["vector", "halfvec"])
async def test_the_server_reads_a_vector_as_it_was_meant(database: Database, kind: str) -> None:
    text = await database.value(f"select $2::{kind}::text where $1::uuid is not null", [1.5, -2.0])
    number = await database.value(f"select '[1.5,-2]'::{kind} where $1::uuid is not null")
    many = await database.value(f"select array['[1,2]', '[3]']::{kind}[] where $1::uuid is not null")

    assert text == "[1.5,-2]"
    assert number == [1.5, -2.0]
    assert many == [[1.0, 2.0], [3.0]]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("halfvec", [70000.0]), ("vector", [math.nan]), ("vector", [1e39]), ("vector", []), ("vector", ["a"])],
)
async def test_what_is_no_vector_is_refused_and_the_connection_stays_usable(
    database: Database, kind: str, values: Any
) -> None:
    pid = await backend(database)

    with pytest.raises(InvalidInput):
        await database.value(BACK.format(kind), values)

    assert await backend(database) == pid


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=50))
def test_no_32_bit_number_is_changed_on_its_way(values: list[float]) -> None:
    assert decode_vector(encode_vector(values)) == values


@given(st.lists(st.floats(width=16, allow_nan=False), max_size=50))
def test_no_16_bit_number_is_changed_on_its_way(values: list[float]) -> None:
    assert decode_halfvec(encode_halfvec(values)) == values
