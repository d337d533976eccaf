from typing import Any

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "AGENT-05")

UNKNOWN = "01890000-0000-7000-8000-000000000000"


def wanted(desk: Program, session: str) -> dict[str, Any]:
    """A call that waits."""
    waits = desk("chat", "desk", "I want a refund.", "--session", session, "--json")
    return next(
        each for each in desk("approvals", "ls", "--json").json if each["id"] == waits.error["details"]["approval_id"]
    )


def test_what_waits_is_listed_with_the_call(desk: Program) -> None:
    approval = wanted(desk, "listed")

    table = desk("approvals", "ls").stdout

    assert table.split("\n")[0].split() == ["ID", "CALL", "REASON", "USER", "RUN", "ID", "CREATED"]
    assert f"{approval['id'][:13]}  refund(euros=5, parcel=AB-1)  the agent's list  local" in table


@pytest.mark.parametrize(("word", "state", "ran"), [("approve", "approved", True), ("deny", "denied", False)])
def test_a_decision_has_the_agent_go_on(desk: Program, word: str, state: str, ran: bool) -> None:
    approval = wanted(desk, word)

    done = desk("approvals", word, approval["id"], "--comment", "as you like")
    after = desk("chat", "desk", "Hello!", "--session", word)  # answered when the run before has ended
    shown = desk("runs", "show", approval["run_id"]).stdout

    assert (done.code, done.stdout) == (0, "")
    assert f"refund(euros=5, parcel=AB-1) is {state}." in done.stderr
    assert after.stdout == "Good morning.\n"
    assert shown.startswith(f"{approval['run_id']} done\n")
    assert f"? {state}: as you like" in shown
    assert ("← done: 5.00 euros" in shown) is ran
    assert approval["id"] not in desk("approvals", "ls").stdout


@pytest.mark.req("ENG-07")
def test_what_was_decided_cannot_be_decided_otherwise(desk: Program) -> None:
    approval = wanted(desk, "twice")
    desk("approvals", "deny", approval["id"])

    again = desk("approvals", "deny", approval["id"], "--json")
    otherwise = desk("approvals", "approve", approval["id"], "--json")

    assert again.json["state"] == "denied"
    assert (otherwise.code, otherwise.error["code"]) == (5, "conflict")


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(("id", "code"), [(UNKNOWN, 3), ("7", 3), ("x7", 2)])
def test_what_is_not_there_is_told(desk: Program, id: str, code: int) -> None:
    done = desk("approvals", "approve", id)

    assert (done.code, done.stdout) == (code, "")
    assert done.stderr
