"""Secrets are struck out of what back ends give back, in whichever form they come."""

import base64
import html
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.text import render
from holdfast.execution.redaction import STRUCK, struck

SECRET = 's3cr/et+ké"y'
TEXTS = st.text(max_size=20)


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        "s3cr%2fet%2bk%c3%a9%22y",
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        html.escape(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_every_form_of_a_secret_is_struck_out_of_text_keys_and_values(form: str) -> None:
    value = {"said": f"you sent {form}!", form: [form, {"deep": f"<{form}>"}], "n": 1, "none": None}

    left = struck(value, [SECRET])

    assert left == {"said": f"you sent {STRUCK}!", STRUCK: [STRUCK, {"deep": f"<{STRUCK}>"}], "n": 1, "none": None}
    assert struck(f"a {form} b", [SECRET]) == f"a {STRUCK} b"


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "x", "xy"])
def test_a_secret_within_other_base64_is_struck_out(before: str, after: str) -> None:
    told = base64.b64encode(f"{before}correct-horse-battery{after}".encode()).decode()

    left = struck(f"Basic {told}", ["correct-horse-battery"])

    around = left.removeprefix("Basic ").split(STRUCK)
    assert len(around) == 2
    assert max(map(len, around)) <= 6  # what belongs to its neighbours, or to both


def test_a_password_is_struck_out_without_its_user_too() -> None:
    assert struck("the password hunter22 of ann is wrong", ["ann:hunter22"]) == f"the password {STRUCK} of ann is wrong"


def test_a_secret_of_digits_is_struck_out_of_numbers() -> None:
    assert struck({"pin": 12345678, "n": 7, "yes": True, "f": 0.5}, ["12345678"]) == {
        "pin": STRUCK, "n": 7, "yes": True, "f": 0.5,
    }  # fmt: skip


def test_of_two_secrets_the_longer_is_struck_out_whole() -> None:
    assert struck("abcdef abc", ["abc", "abcdef"]) == f"{STRUCK} {STRUCK}"


def test_what_has_no_secret_is_the_same_object() -> None:
    value = {"a": [1, "b"]}

    assert struck(value, ["s3cret"]) is value
    assert struck(value, []) is value
    assert struck(value, [""]) is value


@given(
    st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)),
    st.text(alphabet='abcXYZ019"\\/é\n', min_size=6, max_size=12),
    TEXTS,
)
def test_no_secret_is_left_in_any_value(value: Any, secret: str, other: str) -> None:
    echoed = {"value": value, "echo": [other + secret + other, {secret: other}]}

    left = render(struck(echoed, [secret])).decode()

    assert secret not in left.replace(STRUCK, "")
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in left.replace(STRUCK, "\0")


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("secret", ["tok-abc-12345678\n", "  tok-abc-12345678 ", "ann:tok-abc-12345678\r\n"])
def test_a_secret_is_struck_out_without_the_space_at_its_ends_too(secret: str) -> None:
    assert struck("Bearer tok-abc-12345678", [secret]) == f"Bearer {STRUCK}"


def test_a_secret_of_nothing_but_space_strikes_nothing_else_out() -> None:
    assert struck("as it was", ["\n\n"]) == "as it was"
