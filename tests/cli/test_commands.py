"""Commands, each test with a running server and without one: there must be no difference."""

import json
import re
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.cli.commands import argument, format_command
from tests.cli.program import MODULE, Done, Program
from tests.processes import Process

pytestmark = pytest.mark.req("UI-02", "EDA-01")

SHOP = """
import holdfast

app = holdfast.App()


@app.skill("translate")
async def translate(text: str, to: str = "de") -> dict[str, str]:
    return {to: text.upper()}


@app.skill("refuse", attempts=1)
def refuse() -> None:
    raise ValueError("not today")
"""


@pytest.fixture
def worker(served: Program, tmp_path: Path):
    """A worker for `translate` and `refuse`."""
    (tmp_path / "shop.py").write_text(SHOP)
    process = Process([*MODULE, "worker", "shop:app"], served.environment, tmp_path)
    try:
        process.wait_for("translate")
        yield process
    finally:
        process.end()


def answered(served: Program, id: str, **outcome: object) -> Done:
    """Answer a command as a worker does that knows only the topics."""
    return served("topics", "publish", "agent-events", json.dumps({"correlationId": id, **outcome}), "--key", id)


@pytest.mark.usefixtures("worker")
def test_a_result_is_alone_on_stdout_and_a_failure_ends_with_1(served: Program) -> None:
    done = served("commands", "invoke", "translate", "text=hello", "to=fr")
    record = served("commands", "invoke", "translate", "text=hello", "--json").json
    failed = served("commands", "invoke", "refuse", "--json")

    assert (done.code, done.stdout) == (0, '{"fr": "HELLO"}\n'), done.stderr
    assert (record["command"]["state"], record["completion"]["result"]) == ("done", {"de": "HELLO"})
    assert (failed.code, failed.stdout, failed.error["code"]) == (1, "", "command_failed")
    assert "not today" in failed.error["why"]


def test_who_does_not_wait_gets_the_id_and_finds_the_answer_later(served: Program) -> None:
    asked = served("commands", "invoke", "later", "n=1", "--wait", "0", "--priority", "3")
    id = asked.stdout.strip()
    before = served("commands", "show", id)
    answered(served, id, result=["grün"])
    waited = served("commands", "invoke", "later", "n=1", "--id", id, "--wait", "30")
    after = served("commands", "show", id)
    record = served("commands", "show", id, "--json").json

    assert asked.code == 0
    assert before.stdout.startswith(f"'{id}' queued\nskill      'later'\narguments  {{\"n\": 1}}\n")
    assert (waited.code, waited.stdout) == (0, '["grün"]\n')
    assert '\nresult     ["grün"]\n' in after.stdout
    assert (record["command"]["priority"], record["completions"]) == (3, [record["completion"]])


def test_an_answer_that_does_not_come_in_time_ends_with_6_and_the_command_goes_on(served: Program) -> None:
    id = f"c-{uuid4().hex[:8]}"

    done = served("commands", "invoke", "never", "--id", id, "--wait", "0.5")

    assert (done.code, done.stdout) == (6, "")
    assert f"holdfast commands show {id}" in done.stderr
    assert served("commands", "show", id, "--json").json["command"]["state"] == "queued"


def test_commands_are_listed_and_cancelled(served: Program) -> None:
    skill = f"s-{uuid4().hex[:8]}"
    first, second = (served("commands", "invoke", skill, "--wait", "0").stdout.strip() for _ in range(2))
    cancelled = served("commands", "cancel", first)
    table = served("commands", "ls", "--skill", skill).stdout
    queued = served("commands", "ls", "--skill", skill, "--state", "queued", "--limit", "5", "--json").json

    assert (cancelled.code, cancelled.stdout) == (0, "")
    assert "is cancelled" in cancelled.stderr
    assert re.search(rf"^{second} +{skill} +queued", table, re.MULTILINE)
    assert re.search(rf"^{first} +{skill} +cancelled", table, re.MULTILINE)
    assert [command["correlation_id"] for command in queued] == [second]


@pytest.mark.parametrize("id", ["a/b", "/", "50%", "%2F", "a b", "ü?#"])
def test_an_id_may_be_any_text(served: Program, id: str) -> None:
    asked = served("commands", "invoke", "never", "--id", id, "--wait", "0")
    shown = served("commands", "show", id, "--json")
    cancelled = served("commands", "cancel", id, "--json")

    assert asked.stdout == f"{id}\n"
    assert shown.json["command"]["correlation_id"] == id
    assert (cancelled.json["command"]["correlation_id"], cancelled.json["command"]["state"]) == (id, "cancelled")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["show", "nothing"], 3, "`holdfast commands ls`"),
        (["cancel", "nothing"], 3, "the command nothing does not exist"),
        (["ls", "--state", "lost"], 2, "state"),
        (["ls", "--limit", "101"], 2, "limit"),
        (["invoke", "translate", "text"], 2, "is not an argument"),
        (["invoke", "translate", "--id", ""], 2, "does not match the schema"),
        (["invoke", "translate", "--wait", "-1"], 2, "wait"),
        (["invoke", ""], 2, "skill"),
        (["show", "\udcff"], 2, "not UTF-8"),
    ],
)
def test_what_cannot_be_done_is_refused(served: Program, words: list[str], code: int, said: str) -> None:
    done = served("commands", *words)

    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_value_is_json_or_else_text() -> None:
    given = ["a=1", "b=[1, 2]", "c=hello", 'd="1"', "e=", "f=x=y", "g=null"]

    assert dict(map(argument, given)) == {"a": 1, "b": [1, 2], "c": "hello", "d": "1", "e": "", "f": "x=y", "g": None}


def test_a_terminal_obeys_nothing_that_a_command_says() -> None:
    command = {
        "correlation_id": "c\n1",
        "skill": "\x1b[31m",
        "arguments": {"text": "\x1b"},
        "state": "queued",
        "attempts": 2,
        "worker": None,
        "created_at": "2026-01-01T00:00:00Z",
        "finished_at": None,
        "error": "bad\nluck",
    }

    text = format_command({"command": command, "completion": None})

    assert text.startswith("'c\\n1' queued\n")
    assert text.endswith("error      'bad\\nluck'")
    assert "\x1b" not in text
