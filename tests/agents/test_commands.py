import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.text_calls import MAX_COMMANDS, commands
from holdfast.skills.arguments import ArgumentRefusal, parse_arguments
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run

pytestmark = pytest.mark.req("TALK-05")


def track(parcel: str) -> None:
    """Where a parcel is."""


def bash(command: str, run: Run) -> None:
    """Run a command."""


def count(to: int) -> None:
    """Count."""


def ship(parcel: str, copies: int = 1, fragile: bool | None = None, via: Literal["air", "sea"] = "sea") -> None:
    """Ship a parcel."""


def ping() -> None:
    """Takes nothing."""


TOOLS = {each.__name__: tool_of(each) for each in (track, bash, count, ship, ping)}


def read(reply: str) -> list[tuple[str, Any]]:
    """Name and arguments of each command."""
    return [(each.call.name, json.loads(each.call.arguments)) for each in commands(reply, TOOLS, id="c")]


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("# Run track AB-123", "track", {"parcel": "AB-123"}),
        ("# Run track parcel=AB-123", "track", {"parcel": "AB-123"}),
        ('# Run track {"parcel": "AB-123"}', "track", {"parcel": "AB-123"}),
        ('# Run track "AB 123"', "track", {"parcel": "AB 123"}),
        ("# Run track 'parcel=AB 123'", "track", {"parcel": "AB 123"}),
        ("# Run track parcel=", "track", {"parcel": ""}),
        ("  # Run \t track  AB-123  \r", "track", {"parcel": "AB-123"}),
        ("# Run track 123", "track", {"parcel": "123"}),
        ("# Run track 北京-1", "track", {"parcel": "北京-1"}),
        ("# Run bash ls -la", "bash", {"command": "ls -la"}),
        ('# Run bash grep -r "a b" *', "bash", {"command": 'grep -r "a b" *'}),
        ("# Run bash LANG=C ls", "bash", {"command": "LANG=C ls"}),
        ("# Run count 7", "count", {"to": 7}),
        ("# Run count seven", "count", {"to": "seven"}),
        ("# Run ship AB-123 2 true air", "ship", {"parcel": "AB-123", "copies": 2, "fragile": True, "via": "air"}),
        ("# Run ship via=air AB-123 copies=2", "ship", {"via": "air", "copies": 2, "parcel": "AB-123"}),
        ("# Run ship AB-123 fragile=null", "ship", {"fragile": None, "parcel": "AB-123"}),
        ("# Run ping", "ping", {}),
    ],
)
def test_a_line_is_a_call(line: str, name: str, arguments: dict[str, Any]) -> None:
    assert read(line) == [(name, arguments)]


def test_each_line_is_a_call_with_an_id() -> None:
    found = commands("I look.\n# Run track 'A 1'\nand\n# Run ping", TOOLS, id="run-1")

    assert [each.call.id for each in found] == ["run-1-1", "run-1-2"]
    assert [each.call.name for each in found] == ["track", "ping"]
    assert [each.refusal for each in found] == [None, None]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Run track AB-123",
        "I will # Run track AB-123",
        "## Run track AB-123",
        "#Run track AB-123",
        "# Running late",
        "# Run",
        "    # Run track AB-123",
        "> # Run track AB-123",
        "```\n# Run track AB-123\n```",
        "```sh\n# Run track AB-123",
        "~~~~\n~~~\n# Run track AB-123\n~~~~",
        "````\n```\n# Run track AB-123\n````",
    ],
)
def test_what_is_no_whole_line_of_its_own_is_no_call(reply: str) -> None:
    assert commands(reply, TOOLS, id="c") == []


def test_after_a_code_fence_lines_are_calls_again() -> None:
    assert read("```\n# Run track A\n```\n# Run track B\n``` `x` ```\n# Run track C") == [
        ("track", {"parcel": "B"}),
        ("track", {"parcel": "C"}),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("# Run fly AB-123", "there is no tool 'fly'. The tools are bash, count, ping, ship, track."),
        ('# Run fly {"a": 1}', "there is no tool 'fly'"),
        ('# Run track "AB', 'this cannot be read: no closing quotation in `# Run track "AB`'),
        ("# Run ping now", "ping was not called: there are more words than arguments. Its arguments: none."),
        ("# Run ship a 1 true air more", "Its arguments: parcel, copies, fragile, via."),
    ],
)
def test_a_call_that_cannot_be_made_says_why(line: str, said: str) -> None:
    [command] = commands(line, TOOLS, id="c")

    assert command.refusal is not None
    assert said in command.refusal.text
    assert command.call.name in line


def test_what_does_not_fit_is_for_the_check_of_arguments_to_refuse() -> None:
    [command] = commands("# Run count seven", TOOLS, id="c")

    checked = parse_arguments(TOOLS["count"], command.call.arguments)

    assert isinstance(checked, ArgumentRefusal)
    assert "`to` is invalid, it must be an integer" in checked.text


def test_a_reply_has_no_end_of_commands() -> None:
    assert len(commands("# Run ping\n" * 10_000, TOOLS, id="c")) == MAX_COMMANDS


@given(st.sampled_from(sorted(TOOLS)), st.text(st.characters(exclude_characters="\n")))
def test_whatever_stands_in_a_line_is_a_call_or_says_why_not(name: str, rest: str) -> None:
    for command in commands(f"# Run {name} {rest}", TOOLS, id="c"):
        assert command.refusal is not None or command.call.arguments.startswith("{")


@pytest.mark.req("TALK-05", "SAFE-04")
def test_a_line_that_is_too_long_to_take_apart_is_refused_and_json_is_not() -> None:
    long = "x" * 200_000

    [words] = commands(f"# Run track '{long}'", TOOLS, id="c")
    [json] = commands(f'# Run track {{"parcel": "{long}"}}', TOOLS, id="c")

    assert words.refusal is not None
    assert "longer than 10,000 characters" in words.refusal.text
    assert (json.refusal, len(json.call.arguments)) == (None, 200_000 + len('{"parcel": ""}'))
