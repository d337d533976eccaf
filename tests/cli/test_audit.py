"""The audit, each test with a running server and without one: there must be no difference."""

import json
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from holdfast.cli.api import Api
from holdfast.cli.audit import format_entry, verify_chain
from tests.cli.program import Done, Program

pytestmark = pytest.mark.req("UI-02", "MCP-07", "SAFE-07")


@pytest.fixture
def user() -> str:
    """A user nobody else means."""
    return f"user-{uuid4().hex[:8]}"


def entries_of(done: Done) -> list[dict[str, Any]]:
    """The entries that a command printed as JSON, one per line."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def change(program: Program, user: str) -> str:
    """Make a key, which the audit records; its id."""
    return program("keys", "create", "--user", user, "--json").json["id"]


def test_the_newest_entries_are_printed_the_oldest_first(served: Program, user: str) -> None:
    ids = [change(served, user) for _ in range(2)]

    printed = served("audit", "tail", "-n", "2", "--action", "create_key")
    as_json = served("audit", "tail", "-n", "2", "--action", "create_key", "--json")
    nothing = served("audit", "tail", "--tool", user)
    wrong = served("audit", "tail", "--outcome", "perhaps")

    assert [line.split()[-1] for line in printed.stdout.splitlines()] == ids
    assert [found["details"]["principal"] for found in entries_of(as_json)] == [user, user]
    assert (nothing.code, nothing.stdout) == (0, "")
    assert wrong.code == 2


def test_the_audit_verifies_here_and_as_a_file(served: Program, user: str, tmp_path: Path) -> None:
    change(served, user)
    file = tmp_path / "audit.jsonl"

    there = served("audit", "verify")
    exported = served("audit", "export", str(file))
    as_file = served("audit", "verify", str(file))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    changed = served("audit", "verify", str(file))
    changed_as_json = served("audit", "verify", str(file), "--json")

    assert (there.code, exported.code, as_file.code) == (0, 0, 0)
    assert "entries are as they were recorded." in there.stderr
    assert f"Exported {len(lines) - 2} entries." in exported.stderr
    assert (changed.code, changed_as_json.code) == (1, 1)
    assert f"missing at the entry {len(lines) - 2}" in changed.stderr
    assert changed_as_json.error["details"]["fault"]["kind"] == "missing"


def test_published_heads_are_compared(served: Program, user: str, tmp_path: Path) -> None:
    change(served, user)
    tenant = served("audit", "verify", "--json").json["tenant_id"]
    heads, others = tmp_path / "heads.jsonl", tmp_path / "others.jsonl"
    heads.write_text(head(tenant, 1, "0" * 64))
    others.write_text(head(str(uuid4()), 1, "0" * 64))

    found = served("audit", "verify", "--heads", str(heads))
    of_others = served("audit", "verify", "--heads", str(others))
    broken = served("audit", "verify", "--heads", str(tmp_path / "absent"))

    assert found.code == 1
    assert "the chain was written anew" in found.stderr
    assert (of_others.code, broken.code) == (2, 2)
    assert "no published head of this audit" in of_others.stderr


async def test_published_heads_are_compared_from_the_first_entry_that_retention_has_left(tmp_path: Path) -> None:
    tenant, begins, ends = str(uuid4()), 1_000_000, 1_120_000
    file = tmp_path / "heads.jsonl"
    published = [7, begins + 1, begins + 60_000, ends]
    file.write_text("".join(head(tenant, seq, "0" * 64) for seq in published))
    compared: list[int] = []

    class Answers:
        """A server whose chain begins after a checkpoint."""

        async def call(self, name: str, *, limit: int, **body: Any) -> dict[str, Any]:
            start = body.get("progress", {"seq": begins})["seq"]
            seq = min(start + limit, ends)
            compared.extend(given["seq"] for given in body.get("heads", ()) if start < given["seq"] <= seq)
            progress = {"seq": seq, "checkpoint": f"{begins}:00"}
            return {"tenant_id": tenant, "progress": progress, "end": ends, "complete": seq == ends, "fault": None}

    found = await verify_chain(cast(Api, Answers()), file, lambda _: None)

    assert found["complete"]
    assert compared == published[1:]


def head(tenant: str, seq: int, hash: str) -> str:
    """A line of a file with published heads."""
    line = {"tenant": "default", "tenant_id": tenant, "seq": seq, "hash": hash, "at": "2031-01-01T00:00:00Z"}
    return f"{json.dumps(line)}\n"


def test_a_person_is_erased(served: Program, user: str) -> None:
    done = served("audit", "erase", user)
    last = served("audit", "tail", "-n", "3", "--json")

    assert done.code == 0
    assert f"Erased the personal data of {user} in 0 entries." in done.stderr
    assert "audit.erase" in [found["action"] for found in entries_of(last)]
    assert user not in last.stdout


def test_an_entry_is_a_line() -> None:
    entry = {
        "seq": 7, "at": "2031-01-01T00:00:00Z", "outcome": "refused", "user": "ann", "actor": "backend",
        "agent": "support", "action": "tool.call", "target": "x" * 100, "code": "forbidden", "rule": "night\x1b[2J",
    }  # fmt: skip

    line = format_entry(entry)

    assert "  refused    backend as ann by support  tool.call  " + "x" * 60 + "…  (forbidden night" in line
    assert "\x1b" not in line
    assert "(erased)" in format_entry({**entry, "user": None, "actor": None, "erased": True})
    without_target = {**entry, "action": "set_limit", "target": "", "details": {"rule": "tenant: 9 cost per day"}}
    assert "set_limit  rule=tenant: 9 cost per day" in format_entry(without_target)
