"""Topics, each test with a running server and without one: there must be no difference."""

import json
import re
import shutil
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.cli.topics import format_record
from holdfast.core.config import load_config
from holdfast.engine import open_engine
from tests.cli.page import Page
from tests.cli.program import MODULE, Program
from tests.processes import Process

pytestmark = pytest.mark.req("UI-02", "BUS-04")

ROOT = Path(__file__).parents[2]
HOSTILE = "nul\0 half \ud83d and \x1b[31mred"


@pytest.fixture
async def topic(served: Program) -> str:
    """A topic of two partitions with twelve records, all of which its group `billing-…` has read."""
    name = f"orders-{uuid4().hex[:8]}"
    async with open_engine(config=load_config({"data": served.data}, environ={}, cwd=served.folder)) as engine:
        await engine.log.create(name, partitions=2)
        for number in range(12):
            await engine.log.publish(name, key=f"k{number}", value={"n": number})
        async with engine.log.subscribe([name], group=f"billing-{name}") as records:
            for _ in range(12):
                await records.commit(await anext(records))
    return name


def numbers(lines: str) -> list[int]:
    """The values of records that were printed with --json."""
    return [json.loads(line)["value"]["n"] for line in lines.splitlines()]


def test_a_topic_is_made_listed_and_removed(served: Program) -> None:
    name = f"new-{uuid4().hex[:8]}"
    made = served("topics", "create", name, "--partitions", "3")
    again = served("topics", "create", name, "--json")
    table = served("topics", "ls")
    listed = {topic["name"]: topic for topic in served("topics", "ls", "--json").json}
    removed = served("topics", "rm", name)

    assert (made.code, made.stdout) == (0, "")
    assert f"The topic {name} has 3 partitions." in made.stderr
    assert again.json == {"name": name, "partitions": 3}
    assert re.search(rf"^{name} +3 +0 +0.00 ", table.stdout, re.MULTILINE)
    assert (listed[name]["records"], listed[name]["oldest"]) == (0, None)
    assert (removed.code, removed.stdout) == (0, "")
    assert name not in served("topics", "ls").stdout


def test_a_record_is_published_and_its_place_is_alone_on_stdout(served: Program, topic: str) -> None:
    value = json.dumps({"n": 12, "text": HOSTILE})
    text = served("topics", "publish", topic, value, "--key", "k0", "--header", "a=b=c")
    record = served("topics", "publish", topic, "[1]", "--json").json

    (found,) = [json.loads(line) for line in served("topics", "tail", topic, "-n", "2", "--json").stdout.splitlines()][
        :1
    ]
    assert text.stdout == f"{found['partition']}/{found['offset']}\n"
    assert (found["value"]["text"], found["key"], found["headers"]["a"]) == (HOSTILE, "k0", "b=c")
    assert (record["topic"], record["key"], record["value"]) == (topic, None, [1])


def test_a_value_is_read_from_stdin(served: Program, topic: str) -> None:
    done = served("topics", "publish", topic, "-", "--json", typed=b'"gr\xc3\xbcn"')

    assert done.json["value"] == "grün"


def test_the_newest_records_are_shown_a_line_each(served: Program, topic: str) -> None:
    lines = served("topics", "tail", topic).stdout.splitlines()
    last = served("topics", "tail", topic, "-n", "2", "--json")

    assert len(lines) == 10
    assert re.fullmatch(r'[01]/\d+  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "k11"  {"n": 11}', lines[-1])
    assert numbers(last.stdout) == [10, 11]


def test_records_are_read_from_an_offset_or_a_time_on(served: Program, topic: str) -> None:
    everything = served("topics", "tail", topic, "--offset", "0", "--json")
    one = served("topics", "tail", topic, "--partition", "1", "--offset", "1", "--limit", "2", "--json")
    past = served("topics", "tail", topic, "--at", "2020-01-01", "--json")
    future = served("topics", "tail", topic, "--at", "2099-01-01T00:00:00Z", "--json")

    assert sorted(numbers(everything.stdout)) == list(range(12))
    assert [json.loads(line)["offset"] for line in one.stdout.splitlines()] == [1, 2]
    assert sorted(numbers(past.stdout)) == list(range(12))
    assert (future.code, future.stdout) == (0, "")


def test_who_follows_sees_what_comes_until_they_are_interrupted(served: Program, topic: str) -> None:
    tail = Process([*MODULE, "topics", "tail", topic, "-f", "-n", "1", "--json"], served.environment, served.folder)
    try:
        tail.wait_for('"n": 11')
        for number in (12, 13):
            served("topics", "publish", topic, json.dumps({"n": number}), "--key", "k")
            tail.wait_for(f'"n": {number}')
        tail.send(signal.SIGINT)
        code = tail.wait()
    finally:
        tail.end()

    assert (code, tail.stderr) == (130, "")
    assert numbers(tail.stdout) == [11, 12, 13]


def test_lag_is_shown_and_a_group_reads_again_from_where_it_is_set(served: Program, topic: str) -> None:
    group = f"billing-{topic}"
    before = served("topics", "lag", "--group", group, "--json").json
    done = served("topics", "reset", group, topic, "--partition", "0")
    after = served("topics", "lag", "--group", group, "--json").json
    table = served("topics", "lag", "--group", group)
    to_end = served("topics", "reset", group, topic, "--end", "--json").json

    assert [lag["lag"] for lag in before] == [0, 0]
    assert (done.code, done.stdout) == (0, "")
    assert "partition 0 at 0" in done.stderr
    assert [(lag["position"], lag["lag"]) for lag in after] == [(0, after[0]["end"]), (after[1]["end"], 0)]
    assert table.stdout.splitlines()[0].split()[:6] == ["GROUP", "TOPIC", "PARTITION", "POSITION", "END", "LAG"]
    assert to_end["positions"] == {str(lag["partition"]): lag["end"] for lag in after}


def test_a_tenant_s_topics_are_its_own(served: Program, topic: str) -> None:
    tenant = f"t-{uuid4().hex[:8]}"
    served("tenants", "create", tenant)

    assert served("topics", "ls", "--tenant", tenant, "--json").json == []
    assert served("topics", "tail", topic, "--tenant", tenant).code == 3
    assert served("topics", "lag", "--tenant", tenant, "--json").json == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "a.b"], 2, "not a valid name for a topic"),
        (["create", "{topic}", "--partitions", "7"], 5, "has 2 partitions"),
        (["rm", "unknown"], 3, "the topic unknown does not exist. List the topics with `holdfast topics ls`."),
        (["tail", "unknown", "-f"], 3, "the topic unknown does not exist"),
        (["tail", "{topic}", "--at", "yesterday"], 2, "is not a time"),
        (["tail", "{topic}", "--offset", "1", "--at", "2026-01-01"], 2, "more than one starting position"),
        (["tail", "{topic}", "--partition", "2"], 2, "Use 0 to 1"),
        (["tail", "\udcff"], 2, "not UTF-8"),
        (["publish", "{topic}", "hello"], 2, "Put text in quotes"),
        (["publish", "{topic}", "1", "--header", "a"], 2, "is not a header"),
        (["publish", "{topic}", "1", "--id", "7"], 2, "UUID"),
        (["publish", "unknown", "1"], 3, "the topic unknown does not exist"),
        (["reset", "nobody", "{topic}"], 3, "the group nobody does not exist"),
        (["reset", "billing-{topic}", "{topic}", "--offset", "1", "--end"], 2, "more than one starting position"),
    ],
)
def test_what_cannot_be_done_is_refused(served: Program, topic: str, words: list[str], code: int, said: str) -> None:
    done = served("topics", *(word.replace("{topic}", topic) for word in words))

    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.mark.req("BUS-02", "EDA-05")
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is missing")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("log.md", served, tmp_path)

    for example in page.examples:
        if example.language == "python":  # twice: the first leaves what the second meets
            page.run(example)
    printed = [done.stdout for done in page.run_all()]

    assert page.languages == ["python", "python", "sh", "sh", "sh"]
    over_http, on_the_command_line, metrics = printed[-3:]
    assert '{"records":[],"next":{' in over_http
    assert '{"parcel":9}' in on_the_command_line
    assert 'holdfast_topic_records_total{tenant="default",topic="orders"} 4.0' in metrics


def test_a_terminal_obeys_nothing_that_a_record_says() -> None:
    record = {"partition": 0, "offset": 7, "at": "2026-01-01T00:00:00Z", "key": "a\nb", "value": "\x1b[31mred\x9b"}

    line = format_record(record)

    assert line.endswith('"a\\nb"  "\\u001b[31mred\\x9b"')
    assert "\n" not in line
