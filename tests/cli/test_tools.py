"""Tools, by hand: those of a program that is served, and those that are registered."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.arguments import arguments_of
from holdfast.cli.tools import change_permissions
from holdfast.core.errors import InvalidInput
from tests.cli.page import Page
from tests.cli.program import Program
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.req("UI-02")

UNKNOWN = "01890000-0000-7000-8000-000000000000"
SCHEMA: dict[str, Any] = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "fast": {"type": "boolean"},
        "size": {"type": "array"},
        "where": {"$ref": "#/$defs/Place"},
        "perhaps": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "colour": {"enum": ["red", "1"]},
        "any": {},
    },
    "$defs": {"Place": {"type": "object"}},
}


@pytest.mark.req("SKILL-03")
@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=hello", "hello"),
        ("text=42", "42"),
        ("text=a=b", "a=b"),
        ("text=", ""),
        ("text={}", "{}"),
        ("count=42", 42),
        ("share=1.5", 1.5),
        ("fast=true", True),
        ("size=[800, 600]", [800, 600]),
        ('where={"lat": 1}', {"lat": 1}),
        ("perhaps=null", None),
        ("perhaps=maybe", "maybe"),
        ("perhaps=42", "42"),
        ('perhaps="null"', "null"),
        ("either=42", 42),
        ("either=x", "x"),
        ("either=true", "true"),
        ("colour=1", "1"),
        ("any=[1]", [1]),
        ("any=x", "x"),
        ("other=1", 1),
    ],
)
def test_a_value_is_read_as_the_schema_of_the_tool_says(word: str, value: Any) -> None:
    arguments = arguments_of(SCHEMA, [word])

    assert list(arguments.values()) == [value]


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["count=many"], "the argument 'count' cannot be 'many'"),
        (["share=NaN"], "the argument 'share' cannot be 'NaN'"),
        (["fast=yes"], "Write it like fast=true"),
        (["size=800"], None),
        (["where=here"], "the tool expects object"),
        (["hello"], "'hello' is not an argument"),
        (["=1"], "'=1' is not an argument"),
        (["text=a", "text=b"], "the argument 'text' is given twice"),
    ],
)
def test_a_value_that_cannot_be_read_is_told(words: list[str], said: str | None) -> None:
    if said is None:  # JSON of another type: the tool itself says what it takes
        assert arguments_of(SCHEMA, words) == {"size": 800}
        return
    with pytest.raises(InvalidInput) as refused:
        arguments_of(SCHEMA, words)

    assert said in str(refused.value)


def test_one_permission_is_changed_and_the_others_stay() -> None:
    some = change_permissions({}, "support", "execute")
    all_others = change_permissions(some, "default", "none")
    by_hand = change_permissions(some, None, None, "read")

    assert some == {"agents": {"support": "execute"}}
    assert all_others == {"agents": {"support": "execute"}, "default": "none"}
    assert by_hand == {"agents": {"support": "execute"}, "users": "read"}


@pytest.mark.req("SKILL-04")
def test_tools_are_listed_and_found(desk: Program) -> None:
    table = desk("tools", "ls")
    found = desk("tools", "ls", "where is my parcel")
    of_a_source = desk("tools", "ls", "--source", "none", "--json")

    assert table.stdout.split("\n")[0].split() == ["NAME", "KIND", "ACCESS", "ACTIVE", "SOURCE", "CALLS", "DESCRIPTION"]
    assert "refund  function  execute  yes" in table.stdout
    assert found.stdout.split("\n")[1].split()[1:] == ["track", "Where", "a", "parcel", "is."]
    assert "by words only" in found.stderr
    assert of_a_source.json == []


@pytest.mark.req("UI-05")
def test_each_tool_has_one_line_in_the_list(desk: Program, at_terminal: Callable[..., Terminal]) -> None:
    about = "Says much. " + "And then\nsome more. " * 40
    file = desk.folder / "openapi.json"
    operation = {"operationId": "wordy", "description": about, "responses": {"200": {"description": "x"}}}
    file.write_text(json.dumps({
        "openapi": "3.1.0", "info": {"title": "W", "version": "1"}, "servers": [{"url": "https://wordy.example.com"}],
        "paths": {"/wordy": {"get": operation}},
    }))  # fmt: skip
    assert desk("sources", "add", "wordy", str(file), "--all").code == 0

    piped = desk("tools", "ls").stdout.splitlines()
    seen = at_terminal(desk, "tools", "ls")
    seen.wait()
    whole = {each["name"]: each["description"] for each in desk("tools", "ls", "--json").json}

    tools = len(whole)
    assert len(piped) == tools + 1
    assert next(line for line in piped if line.startswith("get_wordy")).rstrip().endswith("Says much.")
    assert len([line for line in seen.shown.splitlines() if line.strip()]) == tools + 1
    assert "some more." in whole["get_wordy"]


@pytest.mark.req("EXEC-01", "EXEC-02")
def test_a_tool_is_called_and_what_it_gives_printed(desk: Program) -> None:
    words = desk("tools", "call", "track", "parcel=AB-1")
    whole = desk("tools", "call", "track", "--arguments", '{"parcel": "AB-2"}')
    record = desk("tools", "call", "refund", "parcel=7", "euros=2.5", "--json")
    calls = desk("tools", "calls", "refund")

    assert (words.code, json.loads(words.stdout)) == (0, {"parcel": "AB-1", "place": "Cologne"})
    assert json.loads(whole.stdout)["parcel"] == "AB-2"
    assert (record.json["status"], record.json["text"]) == ("done", "2.50 euros for 7")
    assert record.json["arguments"] == {"parcel": "7", "euros": 2.5}
    assert calls.stdout.split("\n")[0].split() == ["ID", "CALL", "STATUS", "GAVE", "WHO", "MS", "CREATED"]
    assert f"{record.json['id'][:13]}  refund(euros=2.5, parcel=7)  done" in calls.stdout


@pytest.mark.req("EXEC-02")
def test_the_same_key_calls_once_and_the_whole_output_is_printed(desk: Program) -> None:
    first = desk("tools", "call", "track", "parcel=AB-1", "--key", "once", "--json").json
    again = desk("tools", "call", "track", "parcel=AB-1", "--key", "once", "--json").json

    output = desk("tools", "output", first["id"])

    assert again["id"] == first["id"]
    assert json.loads(output.stdout) == {"parcel": "AB-1", "place": "Cologne"}


@pytest.mark.req("ENG-07", "SKILL-03")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["call", "none"], 3, "there is no tool 'none'"),
        (["call", "track"], 2, "`parcel`"),
        (["call", "track", "parcel=1", "size=2"], 2, "size"),
        (["call", "refund", "parcel=1", "euros=much"], 2, "the tool expects number"),
        (["call", "track", "--arguments", "{"], 2, "cannot be read as a JSON object"),
        (["call", "track", "--arguments", "[]"], 2, "cannot be read as a JSON object"),
        (["call", "track", "parcel=1", "--arguments", "{}"], 2, "in several ways"),
        (["call", "track", "-"], 2, "cannot be read as a JSON object"),
        (["show", "none"], 3, "there is no tool 'none'"),
        (["rm", "track"], 5, "an app declares the tool track"),
        (["output", UNKNOWN], 3, UNKNOWN),
        (["decide", UNKNOWN, "done"], 3, UNKNOWN),
        (["decide", UNKNOWN, "maybe"], 2, "maybe"),
        (["cancel", "x7"], 2, "is not an id"),
        (["calls", "--status", "odd"], 2, "status"),
        (["permit", "track", "support", "all"], 2, "all"),
        (["permit", "track", "support"], 2, "the arguments name no permission"),
        (["permit", "track"], 2, "--users LEVEL"),
    ],
)
def test_what_cannot_be_done_is_told(desk: Program, words: list[str], code: int, said: str) -> None:
    done = desk("tools", *words)

    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.mark.req("EXEC-02")
def test_a_tool_that_fails_ends_with_1(desk: Program) -> None:
    desk("tools", "deactivate", "refund")
    done = desk("tools", "call", "refund", "parcel=7", "euros=1")
    record = desk("tools", "call", "refund", "parcel=7", "euros=1", "--json")
    desk("tools", "activate", "refund")

    assert (done.code, done.stdout) == (1, "")
    assert "the call of refund failed" in done.stderr
    assert "disabled" in done.stderr
    assert (record.code, record.error["code"], record.error["details"]["status"]) == (1, "command_failed", "failed")
    assert desk("tools", "call", "refund", "parcel=7", "euros=1").code == 0


@pytest.mark.req("SKILL-07")
def test_a_tool_is_shown_with_who_may_use_it_and_how_often_it_was_called(desk: Program) -> None:
    desk("tools", "permit", "refund", "desk", "execute", "--users", "read")
    permitted = desk("tools", "permit", "refund", "default", "execute")

    words = desk("tools", "show", "refund")
    record = desk("tools", "show", "refund", "--json").json

    lines = words.stdout.splitlines()
    assert (permitted.code, permitted.stderr) == (0, "refund: desk execute, others execute, users by hand read.\n")
    assert lines[0] == "refund (function)"
    assert "permissions  desk execute, others execute, users by hand read" in lines
    assert "description  Refund the postage." in lines
    assert "idempotent   no: it is never retried automatically" in lines
    assert "  euros (number, required)" in lines
    assert any(line.startswith("calls ") for line in lines)
    assert record["permissions"] == {"default": "execute", "agents": {"desk": "execute"}, "users": "read"}


@pytest.mark.req("EXEC-01", "SKILL-03", "SKILL-07")
def test_every_example_of_the_page_works(neighbour: Program, tmp_path: Path) -> None:
    page = Page("tools.md", neighbour, tmp_path)

    declared, registered = page.run_all()

    assert page.languages == ["python", "sh"]
    assert declared.stdout == "['refund']\n"
    assert "it ends with 1" in registered.stdout
