"""Dead letters, each test with a running server and without one: there must be no difference."""

from typing import Any
from uuid import uuid4

import pytest

from holdfast.cli.dead_letters import shown
from holdfast.core.config import load_config
from holdfast.engine import open_engine
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "BUS-04")

ERROR = "cannot do it\nbecause \x1b[31mred"


@pytest.fixture(params=["prepared", "served"], ids=["no server runs", "a server runs"])
def holdfast(request: pytest.FixtureRequest) -> Program:
    """The program, on a database of this module."""
    return request.getfixturevalue(request.param)


@pytest.fixture
async def group(holdfast: Program) -> str:
    """A group of its own that has given up two records of its own topic, `of-…`."""
    name = f"billing-{uuid4().hex[:8]}"
    config = load_config({"data": holdfast.data, "bus.max_attempts": 1}, environ={}, cwd=holdfast.folder)
    async with open_engine(config=config) as engine:
        await engine.log.create(f"of-{name}", partitions=1)
        for number in range(2):
            await engine.log.publish(f"of-{name}", key="ann", value={"n": number})
        async with engine.log.subscribe([f"of-{name}"], group=name) as records:
            for record in await records.batch():
                await records.fail(record, ERROR)
    return name


def ids(holdfast: Program, group: str) -> list[str]:
    return [letter["id"] for letter in holdfast("dead-letters", "ls", "--group", group, "--json").json]


def test_dead_letters_are_listed_by_group_and_topic(holdfast: Program, group: str) -> None:
    table = holdfast("dead-letters", "ls", "--group", group).stdout.splitlines()
    by_topic = holdfast("dead-letters", "ls", "--topic", f"of-{group}", "--limit", "1", "--json").json
    older = holdfast("dead-letters", "ls", "--group", group, "--before", by_topic[0]["id"], "--json").json
    others = holdfast("dead-letters", "ls", "--group", group, "--topic", "other", "--json").json

    assert table[0].split()[:5] == ["ID", "GROUP", "TOPIC", "PLACE", "KEY"]
    assert len(table) == 3
    assert table[1].split()[1:5] == [group, f"of-{group}", "0/1", "ann"]
    assert table[1].endswith("cannot do it")
    assert [letter["value"] for letter in by_topic] == [{"n": 1}]
    assert [letter["value"] for letter in older] == [{"n": 0}]
    assert others == []


def test_one_is_shown_whole(holdfast: Program, group: str) -> None:
    (id, _) = ids(holdfast, group)
    text = holdfast("dead-letters", "show", id)
    record = holdfast("dead-letters", "show", id, "--json").json

    assert text.stdout.startswith(f"{id} (dead)\ngroup     {group}\n")
    assert "\nerror\n    cannot do it\n    because \\x1b[31mred\n" in text.stdout
    assert '\nvalue\n    {\n      "n": 1\n    }\n' in text.stdout
    assert (record["error"], record["attempts"], record["value"]) == (ERROR, 1, {"n": 1})


def test_one_or_all_are_redriven(holdfast: Program, group: str) -> None:
    newest, oldest = ids(holdfast, group)
    one = holdfast("dead-letters", "redrive", newest)
    rest = holdfast("dead-letters", "redrive", "--all", "--group", group, "--topic", f"of-{group}", "--json")
    states = [letter["state"] for letter in holdfast("dead-letters", "ls", "--group", group, "--json").json]

    assert (one.code, one.stdout) == (0, "")
    assert "on its way again" in one.stderr
    assert rest.json == {"redriven": 1}
    assert states == ["redriven", "redriven"]
    assert oldest != newest


def test_one_that_is_dropped_is_gone(holdfast: Program, group: str) -> None:
    newest, oldest = ids(holdfast, group)
    dropped = holdfast("dead-letters", "drop", newest)

    assert (dropped.code, dropped.stdout) == (0, "")
    assert ids(holdfast, group) == [oldest]
    for command in ("show", "redrive", "drop"):
        done = holdfast("dead-letters", command, newest, "--json")
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
def test_what_cannot_be_meant_is_refused(holdfast: Program, words: list[str]) -> None:
    done = holdfast("dead-letters", *words)

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

    assert "\ncommand   'c\\n1'\n" in shown(letter)
