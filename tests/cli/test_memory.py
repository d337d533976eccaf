"""Memory, each test with a running server and without one: there must be no difference."""

import json
import os
import shutil
from io import BytesIO
from pathlib import Path
from typing import get_args
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli import memory
from holdfast.cli.main import run
from holdfast.cli.memory import PART_BYTES, parts_of, summands
from holdfast.memory.drafts import MAX_CONTENT_BYTES
from holdfast.memory.memory import TRUSTS
from holdfast.memory.owners import SCOPES
from tests.cli.page import Page
from tests.cli.program import Done, Program

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.req("UI-02")


@pytest.fixture
def ann() -> list[str]:
    """The options that mean a user nobody else means."""
    return ["--user", f"ann & {uuid4().hex[:8]}"]


def add(served: Program, text: str, *options: str) -> str:
    done = served("memory", "add", text, *options)
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout.strip()


def found(done: Done) -> list[str]:
    assert done.code == 0, done
    return [hit["memory"]["content"] for hit in done.json["hits"]]


@pytest.mark.req("MEM-02", "MEM-03", "EMB-02")
def test_what_was_added_is_found_and_that_it_went_by_words_is_said(served: Program, ann: list[str]) -> None:
    id = add(served, "prefers tea", *ann, "--type", "preference", "--ttl", "30d", "--metadata", '{"topic": "drink"}')
    add(served, "prefers trains", *ann)

    table = served("memory", "search", "prefers", *ann)
    filtered = served("memory", "search", "prefers", *ann, "--where", '{"topic": "drink"}', "--json")
    typed = served("memory", "search", "prefers", *ann, "--type", "fact", "--limit", "1", "--json")

    head, *rows = table.stdout.splitlines()
    assert head.split() == ["SCORE", "MEMORY", "TYPE", "SINCE", "ID"]
    assert len(rows) == 2
    assert any("prefers tea" in row and id.startswith(row.split()[-1]) for row in rows)
    assert "holdfast models fetch" in table.stderr
    assert found(filtered) == ["prefers tea"]
    assert "words only" in filtered.json["reduced"]
    assert found(typed) == ["prefers trains"]


@pytest.mark.req("MEM-02")
def test_all_that_can_be_said_of_a_memory_has_its_option(served: Program, ann: list[str]) -> None:
    said = {
        "type": "preference",
        "importance": 0.7,
        "trust": "tool",
        "metadata": {"topic": "drink"},
        "source": "node 7",
        "key": "drink",
        "conversation": "web-42",
        "seq": 7,
        "author": "Ann",
        "at": "2026-03-01T08:00:00Z",
    }
    texts = {name: json.dumps(value) if name == "metadata" else str(value) for name, value in said.items()}

    options = [word for name, text in texts.items() for word in (f"--{name}", text)]
    done = served("memory", "add", "prefers tea", *ann, *options, "--json")

    assert {name: done.json[name] for name in said} == said


@pytest.mark.req("MEM-01")
def test_every_scope_has_its_option(served: Program) -> None:
    name = uuid4().hex
    owners = [["--user", name], ["--agent", name], ["--session", name], ["--org"], ["--user", name, "--agent", "bot"]]
    for place, options in enumerate(owners):
        add(served, f"{name} in place {place}", *options)

    results = [served("memory", "search", name, *options, "--json") for options in owners]
    several = served("memory", "search", name, "--user", name, "--org")

    places = [sorted(int(text[-1]) for text in found(done)) for done in results]
    assert places == [[0, 4], [1], [2], [3], [4]]
    assert (several.code, several.stdout) == (2, "")


@pytest.mark.req("MEM-12")
def test_what_explain_shows_adds_up(served: Program, ann: list[str]) -> None:
    add(served, "prefers tea", *ann, "--author", "Ann", "--at", "2026-03-01T08:00:00Z")
    add(served, "prefers trains over planes", *ann)

    done = served("memory", "explain", "what tea did Ann drink in March 2026?", *ann)

    head, *rows = done.stdout.splitlines()
    assert head.index("WORDS") < head.index("= SCORE") < head.index("MEMORY")
    assert len(rows) == 2
    for row in rows:
        parts, _, rest = row.partition("= ")
        assert sum(map(float, parts.split())) == pytest.approx(float(rest.split()[0]), abs=1e-9)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=10))
def test_rounded_parts_add_up_to_the_rounded_score(values: list[float]) -> None:
    parts = {str(place): value for place, value in enumerate(values)}

    shown = summands(parts, sum(values))

    assert sum(round(float(text) * 10_000) for text in shown.values()) == round(sum(values) * 10_000)
    assert all(abs(float(shown[name]) - value) < 1.1e-4 for name, value in parts.items())


@pytest.mark.req("MEM-09", "MEM-10")
def test_a_memory_is_superseded_pinned_buried_and_forgotten(served: Program, ann: list[str]) -> None:
    old = add(served, "likes tea", *ann)
    new = served("memory", "supersede", old, "likes coffee").stdout.strip()
    pinned = served("memory", "pin", new)
    buried = served("memory", "bury", new, "--json")
    hidden = served("memory", "search", "likes", *ann, "--json")
    served("memory", "bury", new, "--undo")
    shown = served("memory", "search", "likes", *ann, "--json")
    history = served("memory", "history", old)
    forgotten = served("memory", "forget", old)

    assert "pinned" in pinned.stderr
    assert (buried.json["buried"], buried.json["pinned"]) == (True, True)
    assert (found(hidden), found(shown)) == ([], ["likes coffee"])
    assert [row.split()[:2] for row in history.stdout.splitlines()[1:]] == [["2", "supersede"], ["1", "remember"]]
    assert (forgotten.code, forgotten.stdout) == (0, "")
    assert served("memory", "history", old).code == 3


@pytest.mark.req("MEM-12")
def test_why_a_memory_was_not_returned_is_told(served: Program, ann: list[str]) -> None:
    id = add(served, "likes tea", *ann)

    returned = served("memory", "why-not", id, "tea", *ann)
    elsewhere = served("memory", "why-not", id, "tea", "--org", "--json")
    filtered = served("memory", "why-not", id, "tea", *ann, "--type", "preference", "--json")

    assert returned.stdout.startswith("returned: ")
    assert elsewhere.json["reason"] == "scope"
    assert filtered.json["reason"] == "filtered"


@pytest.mark.req("MEM-10")
def test_a_sweep_says_what_would_be_deleted(served: Program) -> None:
    done = served("memory", "sweep")
    record = served("memory", "sweep", "--delete", "--json")

    assert done.stdout.split()[:3] == ["SCOPE", "REASON", "MEMORIES"]
    assert "would be deleted" in done.stderr
    assert record.json["dry_run"] is False


@pytest.mark.req("MEM-14")
def test_memories_are_exported_and_imported(served: Program, ann: list[str], tmp_path: Path) -> None:
    bob = ["--user", uuid4().hex]
    file = tmp_path / "ann.jsonl"
    for text in ("likes tea", "喜欢喝茶"):
        add(served, text, *ann)

    exported = served("memory", "export", *ann)
    file.write_text(exported.stdout, "utf-8")
    first = served("memory", "import", str(file), *bob, "--json")
    again = served("memory", "import", str(file), *bob)
    back = served("memory", "import", str(file))

    assert "Exported 2 memories" in exported.stderr
    assert [json.loads(line).get("content") for line in exported.stdout.splitlines()] == [None, "likes tea", "喜欢喝茶"]
    assert first.json == {"added": 2, "folded": 0, "expired": 0}
    assert "Imported 0 memories; 2 existed already" in again.stderr
    assert "Imported 0 memories; 2 existed already" in back.stderr
    assert len(found(served("memory", "search", "likes tea 茶", *bob, "--json"))) == 2


@pytest.mark.req("MEM-14")
def test_the_whole_of_a_scope_is_exported(served: Program) -> None:
    names = [uuid4().hex for _ in range(2)]
    for name in names:
        add(served, "answers calls", "--agent", name)

    done = served("memory", "export", "--scope", "agent")

    owners = {json.loads(line)["owner"]["name"] for line in done.stdout.splitlines()[1:]}
    assert owners >= set(names)


@pytest.mark.req("MEM-14")
def test_a_broken_line_is_named(served: Program, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text('{"format": "holdfast.memories", "version": 1}\n\n{"content": 7}\n', "utf-8")

    done = served("memory", "import", str(file))

    assert (done.code, done.stdout) == (2, "")
    assert "line 3 cannot be imported" in done.stderr


def test_a_large_file_goes_in_parts_that_know_their_lines() -> None:
    lines = [b"header\n", *(b"%07d" % number + b"x" * 100_000 + b"\n" for number in range(2, 80))]

    parts = list(parts_of(BytesIO(b"".join(lines))))

    assert len(parts) > 2
    assert all(len(part) <= PART_BYTES + len(lines[0]) for _, part in parts)
    # The header stands in the place of the line before the part's first one.
    assert [int(part.splitlines()[1][:7]) for _, part in parts] == [begins + 1 for begins, _ in parts]
    assert b"".join(part.removeprefix(b"header\n") for _, part in parts) == b"".join(lines[1:])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["forget", "00000000-0000-0000-0000-000000000000"], 3),
        (["forget", "no id/../x"], 2),
        (["add", " "], 2),
        (["add", "x", "--metadata", "[1]"], 2),
        (["add", "x", "--metadata", "{"], 2),
        (["add", "x", "--ttl", "soon"], 2),
        (["add", "x", "--at", "yesterday"], 2),
        (["add", "x", "--seq", "7"], 2),
        (["search", ""], 2),
        (["export", "--scope", "everybody"], 2),
        (["import", "nowhere.jsonl"], 2),
    ],
)
def test_what_cannot_be_done_is_said(served: Program, words: list[str], code: int) -> None:
    done = served("memory", *words)

    assert (done.code, done.stdout) == (code, ""), done
    assert done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", ""], "the memory is empty"),
        (["supersede", "00000000-0000-0000-0000-000000000000", " "], "the memory is empty"),
        (["add", "x" * (MAX_CONTENT_BYTES + 1)], "the memory is too large: it has 65537 bytes; the limit is 65536"),
        (["add", "x", "--at", "yesterday"], "'yesterday' is not a time. Write it like 2026-03-01 or"),
        (["add", "x", "--at", "0001-01-01"], "'0001-01-01' is not a time"),
        (["search", "x", "--as-of", "foo"], "'foo' is not a time"),
        (["add", "x", "--trust", "god"], "'god' is not one of 'system', 'user'"),
        (["export", "--scope", "everybody"], "'everybody' is not one of 'session', 'user'"),
        (["why-not", "x", "y"], "'x' is not an id. Copy an id"),
        (["search", ""], "the query is empty"),
        (["search", "x", "--type", "fact", "--type", ""], "--type is empty"),
        *(
            ([*command, option, ""], f"{option} is empty. Give a value, or omit the option.")
            for command in (["add", "x"], ["search", "x"], ["export"], ["import", "x.jsonl"])
            for option in ("--user", "--agent", "--session")
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_wrong_is_said_in_the_words_of_who_wrote_it(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["memory", *words])

    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert said in told.err
    assert "$." not in told.err


@pytest.mark.req("MEM-02")
def test_a_date_alone_is_its_midnight(served: Program, ann: list[str]) -> None:
    alone = served("memory", "add", "likes tea", *ann, "--at", "2026-03-01", "--json")
    elsewhere = served("memory", "add", "likes rain", *ann, "--at", "2026-03-01T08:00:00+05:30", "--json")
    before = served("memory", "search", "likes", *ann, "--as-of", "2026-03-01", "--json")

    assert (alone.json["at"], elsewhere.json["at"]) == ("2026-03-01T00:00:00Z", "2026-03-01T02:30:00Z")
    assert found(before) == ["likes tea"]


def test_what_the_command_knows_of_memories_is_so() -> None:
    assert memory.MAX_BYTES == MAX_CONTENT_BYTES
    assert get_args(memory.Trust) == TRUSTS
    assert get_args(memory.Scope) == SCOPES


@pytest.mark.parametrize("tool", ["curl", "jq"])
def test_what_the_page_uses_is_here(tool: str) -> None:
    if shutil.which(tool) is None:
        assert not os.environ.get("CI"), f"{tool} is missing: docs/memory.md was not tried"
        pytest.skip(f"{tool} is missing: docs/memory.md is not tried")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is missing")
@pytest.mark.req("MEM-03", "MEM-09", "MEM-14")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("memory.md", served, tmp_path)

    page.run_all()

    assert page.languages == ["python", "sh", "sh"]
    assert len((tmp_path / "ann.jsonl").read_text("utf-8").splitlines()) > 2
