import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.skills.sources.openapi import import_document, read_document
from holdfast.skills.sources.openapi.yaml_reader import MOST_ALIASED, read_yaml
from holdfast.skills.sources.source import Choice

pytestmark = pytest.mark.req("MCP-03")

SCALARS = {
    "2020-01-01": "2020-01-01",
    "2001-12-14t21:59:43.10-05:00": "2001-12-14t21:59:43.10-05:00",
    "=": "=",
    "yes": "yes",
    "off": "off",
    "1_000": "1_000",
    "190:20:30": "190:20:30",
    "true": True,
    "~": None,
    "12": 12,
    "+12": 12,
    "012": 12,
    "0x1f": 31,
    "0o17": 15,
    "-1.5e3": -1500.0,
    ".5": 0.5,
    ".inf": ".inf",
    "1e999": "1e999",
    "'12'": "12",
    "!!str 12": "12",
    "!custom 12": 12,
    '"a\\u00e4"': "aä",
}

BROKEN = {
    b'{\n "openapi": "3.0.0",\n "paths": {,}\n}': (3, 12),
    b'{"openapi": ': (1, 13),
    b'{\n"a": "\xff"}': (2, 7),
    b"openapi: 3.0.0\npaths:\n  /x:\n\t- get\n": (4, 1),
    b"a: [\n": (2, 1),
    b"a: b: c\n": (1, 5),
    b"a: b\nc: *d\n": (2, 4),
    b"a: &a\n  b: *a\n": (2, 6),
    b"a: 1\n? [b]\n: 2\n": (2, 3),
    b"a: 1\n---\nb: 2\n": (2, 1),
    b"a: b\n\xff: c\n": (2, 1),
}

MISSHAPEN = {
    b"[]": "",
    b"just text": "",
    b"": "",
    b"{}": "",
    b'{"openapi": "4.0.0"}': "openapi",
    b'{"swagger": "1.2"}': "swagger",
    b'{"openapi": {}}': "",
    b'{"openapi": "3.0.0", "paths": [1]}': "paths",
}


@pytest.mark.parametrize(("written", "value"), SCALARS.items())
def test_a_scalar_of_yaml_is_what_json_would_say_or_text(written: str, value: object) -> None:
    found = read_yaml(f"a: {written}\n")

    assert found == {"a": value}
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("200: ok\nnull: x\nyes: y\n1.10: z\n", {"200": "ok", "null": "x", "yes": "y", "1.10": "z"}),
        ("a: |\n  one\n \t\n  two\n", {"a": "one\n\ntwo\n"}),
        ("a: |\n  \tone\n  two\n", {"a": "\tone\ntwo\n"}),
        ("a: 'x\x80y\x07z'\n", {"a": "x y z"}),
        ("base: &b {a: 1, b: 2}\nmore:\n  <<: *b\n  b: 3\n", {"base": {"a": 1, "b": 2}, "more": {"a": 1, "b": 3}}),
        ("a: &x 1\nb: *x\n", {"a": 1, "b": 1}),
        ("# nothing\n", None),
    ],
)
def test_yaml_is_read_that_a_plain_loader_refuses_or_changes(written: str, value: object) -> None:
    assert read_yaml(written) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=50), inner),
    )
)
def test_what_json_says_is_the_same_in_yaml(value: object) -> None:
    written = json.dumps({"a": value})

    assert read_yaml(written) == {"a": json.loads(written)["a"]}


@pytest.mark.parametrize(("data", "place"), BROKEN.items())
def test_a_document_that_cannot_be_read_says_line_and_column(data: bytes, place: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match=f"line {place[0]}, column {place[1]}") as raised:
        read_document(data)

    assert (raised.value.details["line"], raised.value.details["column"]) == place


@pytest.mark.parametrize(("data", "path"), MISSHAPEN.items())
def test_a_document_of_the_wrong_structure_says_where(data: bytes, path: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_document(data)

    assert raised.value.details["path"] == path


def test_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(InvalidInput, match=f"more than {MOST_ALIASED} values"):
        read_document("\n".join(lines).encode())


@pytest.mark.parametrize("data", [b"[" * 100_000, b"a: " + b"[" * 100_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000])
def test_what_is_nested_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_document(data)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_versions_and_encodings_are_known(version: str, encoding: str) -> None:
    data = json.dumps({"openapi": version, "info": {"title": "Ä", "version": 1.5}, "paths": {}}, ensure_ascii=False)

    found = read_document(data.encode(encoding))

    assert (found.version, found.title, found.label) == (version[:3] if version[:3] != "3.2" else "3.1", "Ä", "1.5")


def test_what_a_database_cannot_hold_is_replaced() -> None:
    data = b'{"openapi": "3.0.0", "info": {"title": "a\\u0000b\\ud83d"}, "paths": {}}'

    assert read_document(data).title == "a\ufffdb\ufffd"
    assert read_document(b'openapi: 3.0.0\ninfo: {title: "a\\0b"}\n').title == "a\ufffdb"


def test_a_source_reads_bytes_and_gives_tools() -> None:
    data = b"openapi: 3.0.0\ninfo: {title: Pets, version: '2'}\npaths:\n  /pets: {get: {}}\n"

    document = read_document(data, location="https://pets.example/openapi.yaml")
    found = import_document(document, Choice(everything=True))

    assert (found.title, found.version) == ("Pets", "2")
    assert [tool.tool.name for tool in found.tools] == ["get_pets"]
    assert found.tools[0].tool.request is not None
    assert found.tools[0].tool.request.url == "https://pets.example/pets"
