"""Dead letters, each test with a running server and without one: there must be no difference."""

from typing import Any
from uuid import uuid4

import pytest

from holdfast.cli.dead_letters import format_dead_letter
from holdfast.core.config import load_config
from holdfast.engine import open_engine
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "BUS-04")

ERROR = "cannot do it\nbecause \x1b[31mred"


@pytest.fixture
async def group(served: Program) -> str:
    """A group of its own that has given up two records of its own topic, `of-…`."""
    name = f"billing-{uuid4().hex[:8]}"
    config = load_config({"data": served.data, "bus.max_attempts": 1}, environ={}, cwd=served.folder)
    async with open_engine(config=config) as engine:
        await engine.log.create(f"of-{name}", partitions=1)
        for number in range(2):
            await engine.log.publish(f"of-{name}", key="ann", value={"n": number})
        async with engine.log.subscribe([f"of-{name}"], group=name) as records:
            for record in await records.batch():
                await records.fail(record, ERROR)
    return name


def ids(served: Program, group: str) -> list[str]:
    return [letter["id"] for letter in served("dead-letters", "ls", "--group", group, "--json").json]


def test_dead_letters_are_listed_by_group_and_topic(served: Program, group: str) -> None:
    table = served("dead-letters", "ls", "--group", group).stdout.splitlines()
    by_topic = served("dead-letters", "ls", "--topic", f"of-{group}", "--limit", "1", "--json").json
    older = served("dead-letters", "ls", "--group", group, "--before", by_topic[0]["id"], "--json").json
    others = served("dead-letters", "ls", "--group", group, "--topic", "other", "--json").json

    assert table[0].split()[:5] == ["ID", "GROUP", "TOPIC", "PLACE", "KEY"]
    assert len(table) == 3
    assert table[1].split()[1:5] == [group, f"of-{group}", "0/1", "ann"]
    assert table[1].endswith("cannot do it")
    assert [letter["value"] for letter in by_topic] == [{"n": 1}]
    assert [letter["value"] for letter in older] == [{"n": 0}]
    assert others == []


def test_one_is_shown_whole(served: Program, group: str) -> None:
    (id, _) = ids(served, group)
    text = served("dead-letters", "show", id)
    record = served("dead-letters", "show", id, "--json").json

    assert text.stdout.startswith(f"{id} (dead)\ngroup     {group}\n")
    assert "\nerror\n    cannot do it\n    because \\x1b[31mred\n" in text.stdout
    assert '\nvalue\n    {\n      "n": 1\n    }\n' in text.stdout
    assert (record["error"], record["attempts"], record["value"]) == (ERROR, 1, {"n": 1})


def test_one_or_all_are_redriven(served: Program, group: str) -> None:
    newest, oldest = ids(served, group)
    one = served("dead-letters", "redrive", newest)
    rest = served("dead-letters", "redrive", "--all", "--group", group, "--topic", f"of-{group}", "--json")
    states = [letter["state"] for letter in served("dead-letters", "ls", "--group", group, "--json").json]

    assert (one.code, one.stdout) == (0, "")
    assert "Redrove 1 dead letter." in one.stderr
    assert rest.json == {"redriven": 1}
    assert states == ["redriven", "redriven"]
    assert oldest != newest


def test_one_that_is_dropped_is_gone(served: Program, group: str) -> None:
    newest, oldest = ids(served, group)
    dropped = served("dead-letters", "drop", newest)

    assert (dropped.code, dropped.stdout) == (0, "")
    assert ids(served, group) == [oldest]
    for command in ("show", "redrive", "drop"):
        done = served("dead-letters", command, newest, "--json")
        assert (done.code, done.stdout, done.error["code"]) == (3, "", "not_found")


@pytest.mark.parametrize(
    "words",
    [
        ["show", "x"],
        ["ls", "--limit", "101"],
        ["ls", "--group", "\udcff"],
        ["redrive"],
        ["redrive", "--group", "billing"],
        ["redrive", "00000000-0000-0000-0000-000000000007", "--all"],
        ["redrive", "00000000-0000-0000-0000-000000000007", "--topic", "orders"],
    ],
)
def test_what_cannot_be_meant_is_refused(served: Program, words: list[str]) -> None:
    done = served("dead-letters", *words)

    assert (done.code, done.stdout) == (2, "")
    assert done.stderr


def test_a_command_that_failed_for_good_is_shown_with_its_id() -> None:
    letter: dict[str, Any] = {
        "id": "7",
        "group": "workers",
        "topic": "agent-commands",
        "partition": 0,
        "offset": 0,
        "record_id": "8",
        "key": "c\n1",
        "headers": {},
        "value": None,
        "correlation_id": "c\n1",
        "error": "x",
        "attempts": 5,
        "failed_at": "2026-01-01T00:00:00Z",
        "state": "dead",
    }

    assert "\ncommand   'c\\n1'\n" in format_dead_letter(letter)
