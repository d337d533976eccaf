"""Secrets are struck out of what back ends give back, in whichever form they come."""

import base64
import html
import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.text import render
from holdfast.execution.redaction import REDACTED, WINDOW, Redaction, redact

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

    left = redact(value, [SECRET])

    assert left == {
        "said": f"you sent {REDACTED}!",
        REDACTED: [REDACTED, {"deep": f"<{REDACTED}>"}],
        "n": 1,
        "none": None,
    }
    assert redact(f"a {form} b", [SECRET]) == f"a {REDACTED} b"


TRICKY = "p'a&s<s>w/o\"r+d é\\x"
MARKS = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def marked(text: str, marks: dict[str, str]) -> str:
    return "".join(marks.get(letter, letter) for letter in text)


def hexed(text: str, form: str) -> str:
    """Every character that is no letter or digit, in a form of its code."""
    return "".join(each if each.isascii() and each.isalnum() else form.format(ord(each)) for each in text)


FORMS = {
    "encodeURIComponent": quote(TRICKY, safe="~()*!.'-_"),
    "encodeURI": quote(TRICKY, safe="~()*!.'-_;,/?:@&=+$#"),
    "percent in mixed case": "".join(
        f"%{byte:02x}" if number % 2 else f"%{byte:02X}" for number, byte in enumerate(TRICKY.encode())
    ),
    "percent here and there": TRICKY.replace("'", "%27").replace("a", "%61"),
    "percent of Latin-1": TRICKY.replace("é", "%E9"),
    "form": quote_plus(TRICKY),
    "Jinja": marked(TRICKY, {**MARKS, "'": "&#39;", '"': "&#34;"}),
    "PHP htmlspecialchars": marked(TRICKY, {**MARKS, "'": "&#039;"}),
    "XML": marked(TRICKY, {**MARKS, "'": "&apos;"}),
    "HTML named": marked(TRICKY, {**MARKS, "é": "&eacute;", "/": "&sol;", "+": "&plus;"}),
    "HTML decimal": hexed(TRICKY, "&#{:d};"),
    "HTML hexadecimal": hexed(TRICKY, "&#x{:X};"),
    "HTML without semicolons": TRICKY.replace("'", "&#39").replace("<", "&lt"),
    "Go's JSON": json.dumps(TRICKY, ensure_ascii=False)[1:-1]
    .replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
    "JSON of capital escapes": hexed(TRICKY, "\\u{:04X}"),
    "PHP's JSON": json.dumps(TRICKY)[1:-1].replace("/", "\\/"),
    "Python's repr": repr(TRICKY)[1:-1],
    "bytes of Python": repr(TRICKY.encode("latin-1"))[2:-1],
    "JavaScript's braces": hexed(TRICKY, "\\u{{{:x}}}"),
    "percent twice": quote(quote(TRICKY, safe=""), safe=""),
    "HTML in JSON": json.dumps(html.escape(TRICKY)).replace("&", "\\u0026")[1:-1],
    "percent in HTML": hexed(quote(TRICKY, safe=""), "&#{:d};"),
    "base64 in a query": quote(base64.b64encode(TRICKY.encode()).decode(), safe=""),
    "base64 in HTML": base64.b64encode(TRICKY.encode()).decode().replace("+", "&#43;").replace("=", "&#61;"),
    "base64 of percent": base64.b64encode(quote(TRICKY, safe="").encode()).decode(),
    "base64 of HTML": base64.b64encode(html.escape(TRICKY).encode()).decode().rstrip("="),
}  # fmt: skip


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("form", FORMS)
def test_whatever_encodes_a_secret_it_is_struck_out(form: str) -> None:
    said = FORMS[form]
    value = {"said": f"you sent {said}!", said: [f"<{said}>"]}

    left = redact(value, [TRICKY])

    assert left["said"].startswith("you sent [secret]")
    assert left["said"].removeprefix("you sent [secret]").strip("=&#61;%3D") == "!"
    assert list(left)[1].startswith(REDACTED)
    assert Redaction([TRICKY]).is_in(f'{{"echo": "{said}"}}'.encode())


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_secret_in_a_basic_header_is_struck_out_at_each_offset(place: int) -> None:
    told = base64.b64encode(f"{'u' * place}:correct-horse-battery".encode()).decode()
    wrapped = base64.encodebytes(b"x" * (58 + place) + b"correct-horse-battery" + b"y" * 99).decode()

    assert REDACTED in redact(f"Basic {told}", ["correct-horse-battery"])
    assert REDACTED in redact({"mime": wrapped}, ["correct-horse-battery"])["mime"]


@pytest.mark.parametrize("secret", ["a%41%42%43b", "x&amp;y&lt;z", "back\\nslash\\t!"])
@pytest.mark.parametrize("encode", [str, html.escape, partial(quote, safe=""), json.dumps])
def test_a_secret_that_looks_encoded_itself_is_struck_out(secret: str, encode: Callable[[str], str]) -> None:
    left = redact(f"> {encode(secret + chr(39))} <", [secret + "'"])

    assert left.replace('"', "") == f"> {REDACTED} <"


@pytest.mark.parametrize(
    "text",
    [
        "100% of R&D went to C:\\new\\users\\x and &lt;b&gt;",
        "%zz %4 &#; &#x; &nothing; \\u12 \\x \\",
        "&#99999999999; &#x110000; \\U00110000 %ff%fe",
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
    ],
)
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    value = {"text": text}

    assert redact(value, ["s3cret/'value", "abcd", "1234"]) is value
    assert redact(text, ["s3cret/'value", "abcd", "1234"]) is text


def test_what_stands_around_an_encoded_secret_stays() -> None:
    said = quote("name=ann&token=s3cr/et+key&more=1", safe="")

    assert redact(said, ["s3cr/et+key"]) == quote("name=ann&token=", safe="") + REDACTED + quote("&more=1", safe="")


def test_a_secret_at_the_edge_of_a_window_is_struck_out() -> None:
    for before in range(WINDOW - 40, WINDOW + 8, 7):
        assert redact("-" * before + "s3cr%2Fet+key" + "-", ["s3cr/et+key"]) == "-" * before + REDACTED + "-"


@pytest.mark.parametrize(
    "unit",
    [
        "%41",
        "&#39;",
        "\\u0041",
        "%2541",
        "a%41",
        "&amp;",
        "\\\\",
        "word and ",
        "QUJD" * 16 + " ",
        "%41&#39;\\n",
        "A" * 64,
    ],
)
def test_the_time_grows_with_the_length_of_the_text_alone(unit: str) -> None:
    secrets = ["s3cr/et+'key", "A" * 63 + "%", "ann:'&" * 20]

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = process_time()
        redact(text, secrets)
        return process_time() - started

    seconds(1000)
    assert seconds(2_000_000) < 8 * seconds(500_000) + 0.5


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "x", "xy"])
def test_a_secret_within_other_base64_is_struck_out(before: str, after: str) -> None:
    told = base64.b64encode(f"{before}correct-horse-battery{after}".encode()).decode()

    left = redact(f"Basic {told}", ["correct-horse-battery"])

    around = left.removeprefix("Basic ").split(REDACTED)
    assert len(around) == 2
    assert max(map(len, around)) <= 6  # what belongs to its neighbours, or to both


@pytest.mark.req("EXEC-04")
def test_an_escaped_secret_in_the_shortest_base64_that_can_contain_it_is_struck_out() -> None:
    secret = "correct%20horse%2Dbattery"
    for escaped in (secret, quote(secret), json.dumps(f"{secret}é")[1:-1]):
        told = base64.b64encode(escaped.encode()).decode().rstrip("=")

        assert REDACTED in redact(f"it is {told}.", [secret]), escaped


def test_words_too_short_for_the_secret_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(encoded: str) -> str:
        raise AssertionError(f"{encoded} was decoded")

    monkeypatch.setattr("holdfast.execution.redaction._text_of", refuse)
    answer = {"items": [{"id": str(uuid4()), "page": f"https://example.com/some/longer/path/{n}"} for n in range(9)]}

    assert redact(answer, ["t" * 100]) is answer


def test_a_password_is_struck_out_without_its_user_too() -> None:
    assert (
        redact("the password hunter22 of ann is wrong", ["ann:hunter22"]) == f"the password {REDACTED} of ann is wrong"
    )


def test_a_secret_of_digits_is_struck_out_of_numbers() -> None:
    assert redact({"pin": 12345678, "n": 7, "yes": True, "f": 0.5}, ["12345678"]) == {
        "pin": REDACTED, "n": 7, "yes": True, "f": 0.5,
    }  # fmt: skip


def test_of_two_secrets_the_longer_is_struck_out_whole() -> None:
    assert redact("abcdef abc", ["abc", "abcdef"]) == f"{REDACTED} {REDACTED}"


def test_what_has_no_secret_is_the_same_object() -> None:
    value = {"a": [1, "b"]}

    assert redact(value, ["s3cret"]) is value
    assert redact(value, []) is value
    assert redact(value, [""]) is value


@given(
    st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)),
    st.text(alphabet='abcXYZ019"\\/é\n', min_size=6, max_size=12),
    TEXTS,
)
def test_no_secret_is_left_in_any_value(value: Any, secret: str, other: str) -> None:
    echoed = {"value": value, "echo": [other + secret + other, {secret: other}]}

    left = render(redact(echoed, [secret])).decode()

    assert secret not in left.replace(REDACTED, "")
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in left.replace(REDACTED, "\0")


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("secret", ["tok-abc-12345678\n", "  tok-abc-12345678 ", "ann:tok-abc-12345678\r\n"])
def test_a_secret_is_struck_out_without_the_space_at_its_ends_too(secret: str) -> None:
    assert redact("Bearer tok-abc-12345678", [secret]) == f"Bearer {REDACTED}"


def test_a_secret_of_nothing_but_space_strikes_nothing_else_out() -> None:
    assert redact("as it was", ["\n\n"]) == "as it was"


def test_a_redaction_that_has_found_its_secret_is_no_larger() -> None:
    secrets = [f"{number:04}" * 400 for number in range(50)]
    redactions = [Redaction([secret]) for secret in secrets]
    tracemalloc.start()
    try:
        found = [redaction.redact(f"it is {secret}") for redaction, secret in zip(redactions, secrets, strict=True)]
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert set(found) == {f"it is {REDACTED}"}
    assert kept < 200_000
