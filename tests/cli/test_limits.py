"""Limits, each test with a running server and without one: there must be no difference."""

from uuid import uuid4

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "MCP-07")


def test_a_limit_is_set_listed_and_removed(served: Program) -> None:
    user = f"user {uuid4().hex[:8]}"

    made = served("limits", "set", f"{user}: 60 requests a minute, burst 9")
    listed = served("limits", "ls", "--json")
    shown = served("limits", "ls")
    removed = served("limits", "rm", f"{user}: requests per minute")
    gone = served("limits", "rm", f"{user}: requests per minute", "--json")

    assert (made.code, made.stdout) == (0, "")
    assert f"Set the limit {user}: 60 requests per minute, burst 9." in made.stderr
    (limit,) = [each for each in listed.json if each["name"] == f"{user}: requests per minute"]
    assert (limit["origin"], limit["amount"], limit["burst"]) == ("tenant", 60, 9)
    assert shown.stdout.splitlines()[0].split() == ["LIMIT", "SET", "BY", "BY", "AT"]
    assert removed.code == 0
    assert (gone.code, gone.error["code"]) == (3, "not_found")


def test_what_is_no_limit_is_refused_with_an_example(served: Program) -> None:
    done = served("limits", "set", "each user: lots")

    assert done.code == 2
    assert "'lots' is not an amount" in done.stderr
    assert "each user: 60 requests per minute" in done.stderr


def test_usage_is_shown(served: Program) -> None:
    tool = f"tool {uuid4().hex[:8]}"
    served("limits", "set", f"{tool}: 60 requests per minute")

    usage, models = served("limits", "usage"), served("limits", "models")

    assert (usage.code, usage.stderr) == (0, "")
    assert (models.code, models.stderr) == (0, "")
