from itertools import product

import pytest

from holdfast.core.names import MAX_NAME_BYTES, qualified_name, shortened_name, stored_name, stored_names

pytestmark = pytest.mark.req("SAFE-02")

WHO = [("a", "u"), ("a/u", "s"), ("a", "u/s"), ("%", "\ud83d"), ("x" * 999, "u"), ("x" * 999 + "/u", "u")]
IDS = ["s", "adk://a/u/s", "adk://a/u/", "a/u/s", "u/s", "é" * 900, "é" * 901, "\0" * 300]


def test_a_qualified_name_is_one_sessions_alone_and_can_be_stored() -> None:
    made = [qualified_name(app, user, id) for (app, user), id in product(WHO, IDS)]

    assert len(set(made)) == len(made)
    assert all(len(stored_name("session", name).encode()) <= MAX_NAME_BYTES for name in made)


def test_a_shortened_name_fits_and_is_one_name_s_alone() -> None:
    long = [f"{end}{letter * 900}{end}" for letter in ("x", "é", "\ud83d") for end in ("a", "b")]

    shortened = [shortened_name(name, 500) for name in long]

    assert shortened_name("ann", 500) == "ann"
    assert len(set(shortened)) == len(long)
    assert all(len(stored_name("user", name).encode()) <= 510 for name in shortened)


@pytest.mark.parametrize("id", IDS)
def test_an_id_is_stored_as_it_is_unless_it_looks_qualified(id: str) -> None:
    plain, other = stored_names("a", "u", id)

    assert plain == (other if id.startswith("adk:") else id)
