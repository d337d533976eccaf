"""Secrets, each test with a running server and without one: there must be no difference."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from tests.cli.program import Done, Program
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.req("UI-02", "EXEC-04")

VALUE = "opensesame-4711"


@pytest.fixture
def name() -> str:
    """A secret nobody else means."""
    return f"key-{uuid4().hex[:8]}"


def put(program: Program, name: str, value: bytes, *options: str) -> Done:
    """Set a secret through a pipe."""
    return program("secrets", "set", name, *options, typed=value)


def test_a_secret_is_set_through_a_pipe_listed_and_removed(served: Program, name: str) -> None:
    made = put(served, name, f"{VALUE}\n".encode(), "--host", "api.example.com", "--host", "*.example.org")
    listed = served("secrets", "ls")
    as_json = served("secrets", "ls", "--json")
    removed = served("secrets", "rm", name)
    gone = served("secrets", "rm", name, "--json")

    (known,) = [secret for secret in as_json.json if secret["name"] == name]
    assert (made.code, made.stdout) == (0, "")
    assert "api.example.com, *.example.org" in made.stderr
    assert listed.stdout.splitlines()[0].split() == ["NAME", "FOR", "USABLE", "SET", "BY"]
    assert (known["hosts"], known["usable"]) == (["api.example.com", "*.example.org"], True)
    assert removed.code == 0
    assert (gone.code, gone.error["code"]) == (3, "not_found")
    assert VALUE not in "".join(done.stdout + done.stderr for done in (made, listed, as_json, removed, gone))


@pytest.mark.parametrize(
    ("value", "options"),
    [(b"", []), (b"\n", []), (b"\xff\xfe", []), (b"a\0b", []), (VALUE.encode(), ["--host", "a b"])],
)
def test_what_cannot_be_a_secret_is_refused_unseen(
    served: Program, name: str, value: bytes, options: list[str]
) -> None:
    done = put(served, name, value, *options)

    assert (done.code, done.stdout) == (2, "")
    assert VALUE not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_value_is_no_argument(served: Program, name: str) -> None:
    done = served("secrets", "set", name, VALUE)

    assert done.code == 2
    assert name not in served("secrets", "ls").stdout


def test_at_a_terminal_the_value_is_typed_unseen(
    served: Program, name: str, at_terminal: Callable[..., Terminal]
) -> None:
    terminal = at_terminal(served, "secrets", "set", name)
    terminal.wait_for(f"Value of {name}:")

    terminal.say(VALUE)

    assert terminal.wait() == 0
    assert VALUE not in terminal.shown
    assert name in served("secrets", "ls").stdout
