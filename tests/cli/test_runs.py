import pytest

from holdfast.cli.runs import rounded
from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02", "AGENT-02", "AGENT-04")

UNKNOWN = "01890000-0000-7000-8000-000000000000"


def test_runs_are_listed_with_the_newest_first_and_by_session(desk: Program) -> None:
    for number in (1, 2):
        desk("chat", "desk", f"Hello {number}!", "--session", "listed")

    table = desk("runs", "ls", "--limit", "1")
    rows = desk("runs", "ls", "--session", "listed", "--json").json

    assert table.stdout.split("\n")[0].split() == [
        "ID", "QUESTION", "AGENT", "USER", "STATE", "STEPS", "IN", "OUT", "COST", "ASKED",
    ]  # fmt: skip
    shown = table.stdout.split("\n")[1].split()
    assert rows[0]["id"].startswith(shown[0])
    assert shown[1:3] == ["Hello", "2!"]
    assert [row["question"] for row in rows] == ["Hello 2!", "Hello 1!"]
    assert "There are more than these 1" in table.stderr
    assert [(row["agent"], row["user"], row["state"]) for row in rows] == [("desk", "local", "done")] * 2
    assert rows[0]["created_at"] > rows[1]["created_at"]


def test_a_run_is_shown_with_what_the_model_was_sent_and_why(desk: Program) -> None:
    desk("chat", "desk", "Where is the parcel?", "--session", "shown")
    run = desk("runs", "ls", "--session", "shown", "--json").json[0]

    words = desk("runs", "show", run["id"]).stdout
    record = desk("runs", "show", run["id"], "--json").json

    lines = [" ".join(line.split()) for line in words.splitlines()]
    assert lines[0] == f"{run['id']} done"
    assert "agent desk, for local" in lines
    assert f"tokens {run['input_tokens']:,} in, {run['output_tokens']:,} out" in lines
    assert "replied in 30 tokens" in lines
    assert lines[lines.index("→ track(parcel=AB-1)") + 1] == '← done: {"parcel":"AB-1","place":"Cologne"}'
    parts = {part["name"]: part for part in record["steps"][0]["sent"]["parts"]}
    for name, part in parts.items():
        assert f"{name} {part['tokens']:,} {part['kept']} {part['reason']}" in lines
    assert [step["number"] for step in record["steps"]] == [1, 2]


def test_a_run_that_failed_says_why(desk: Program) -> None:
    desk("chat", "desk", "Something wrong.", "--session", "wrong")
    run = desk("runs", "ls", "--session", "wrong", "--json").json[0]

    words = desk("runs", "show", run["id"]).stdout

    assert words.startswith(f"{run['id']} failed\n")
    assert "no such thing" in words
    assert "no reply" in words


@pytest.mark.req("AGENT-01")
def test_a_run_that_failed_is_tried_again_and_one_that_ended_can_be_stopped_no_more(desk: Program) -> None:
    desk("chat", "desk", "Something wrong again.", "--session", "again")
    failed = desk("runs", "ls", "--session", "again", "--json").json[0]

    again = desk("runs", "retry", failed["id"], "--json")
    twice = desk("runs", "retry", failed["id"])
    stopped = desk("runs", "cancel", failed["id"])

    assert (again.json["retry_of"], again.json["attempt"]) == (failed["id"], 2)
    assert (twice.code, stopped.code) == (2, 0)
    assert "cannot be retried" in twice.stderr


@pytest.mark.req("AGENT-07")
def test_a_message_that_failed_is_edited_and_answered_or_deleted(desk: Program) -> None:
    for session in ("edited", "deleted"):
        desk("chat", "desk", "Something is wrong.", "--session", session)
    edited, deleted = (
        desk("runs", "ls", "--session", session, "--json").json[0]["id"] for session in ("edited", "deleted")
    )
    marked = desk("sessions", "show", "edited").stdout

    again = desk("runs", "retry", edited, "--message", "Hello 7!", "--json").json
    desk("chat", "desk", "Hello 8!", "--session", "edited")
    done = desk("runs", "show", again["id"], "--json").json
    gone = desk("sessions", "delete-message", "deleted", "1")
    refused = desk("runs", "retry", deleted)

    assert "Message 1 was not answered: the turn failed." in marked
    assert f"retry: holdfast runs retry {edited}" in marked
    assert (again["retry_of"], done["run"]["state"]) == (edited, "done")
    assert [each["content"] for each in done["steps"][0]["sent"]["messages"][1:]] == ["Hello 7!"]
    assert (gone.code, refused.code) == (0, 2)
    assert "its message was deleted" in refused.stderr
    assert desk("runs", "retry", again["id"], "--message", "Hello!").code == 2
    assert desk("sessions", "delete-message", "deleted", "1").code == 3


@pytest.mark.req("AGENT-07")
def test_a_message_is_edited_by_its_number(desk: Program) -> None:
    desk("chat", "desk", "Hello 9!", "--session", "corrected")

    changed = desk("sessions", "edit-message", "corrected", "1", "Hello 10!")

    shown = desk("sessions", "show", "corrected", "--json").json
    assert (changed.code, shown[0]["content"], shown[0]["version"]) == (0, "Hello 10!", 2)


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["show", UNKNOWN], 3),
        (["show", "x7"], 2),
        (["ls", "--session", "nobody has heard of it"], 3),
        (["ls", "--limit", "0"], 2),
    ],
)
def test_what_is_not_there_is_told(desk: Program, words: list[str], code: int) -> None:
    done = desk("runs", *words)

    assert (done.code, done.stdout) == (code, "")
    assert done.stderr


def test_a_tenant_s_runs_are_its_own(desk: Program) -> None:
    desk("chat", "desk", "Hello!", "--session", "ours")
    run = desk("runs", "ls", "--session", "ours", "--json").json[0]
    desk("tenants", "create", "other")

    assert desk("runs", "ls", "--tenant", "other", "--json").json == []
    assert desk("runs", "show", run["id"], "--tenant", "other").code == 3


def test_agents_are_listed_and_shown(desk: Program) -> None:
    table = desk("agents", "ls")
    words = desk("agents", "show", "desk")
    record = desk("agents", "show", "desk", "--json").json

    assert "desk  llm   yes     yes     Answers at the desk." in table.stdout
    assert words.stdout == (
        "desk (llm)\ndescription  Answers at the desk.\nfrom         a program\n"
        "tools        track, refund\napprove      refund\n\nYou help.\n"
    )
    assert (record["tools"], record["skills"]) == (["track", "refund"], [])
    assert desk("agents", "show", "nobody").code == 3


@pytest.mark.req("UI-05")
def test_the_beginning_of_an_id_is_enough_where_no_other_has_it(desk: Program) -> None:
    for number in (1, 2):
        desk("chat", "desk", f"Hello {number}!", "--session", "prefixed")
    first, second = (run["id"] for run in desk("runs", "ls", "--session", "prefixed", "--json").json)
    least = next(n for n in range(1, 37) if first[:n] != second[:n])

    table = desk("runs", "ls", "--session", "prefixed").stdout.splitlines()[1:]
    shown = desk("runs", "show", table[0].split()[0], "--json")
    several = desk("runs", "show", first[: least - 1], "--json")
    unknown = desk("runs", "show", "ffffffff", "--json")
    odd = desk("runs", "show", "no-such-id", "--json")

    assert shown.json["run"]["id"] == first
    assert (several.code, several.error["code"]) == (2, "invalid_input")
    listed = several.error["why"].removesuffix(", …").split(", ")
    assert len(listed) > 1
    assert all(id.startswith(first[: least - 1]) for id in listed)
    assert (unknown.code, unknown.error["code"]) == (3, "not_found")
    assert (odd.code, odd.error["code"]) == (2, "invalid_input")


@pytest.mark.parametrize(
    ("cost", "shown"), [(0.0, "0"), (0.5, "0.5"), (0.123456, "0.1235"), (0.00001, "<0.0001"), (12.0, "12")]
)
def test_costs_are_rounded(cost: float, shown: str) -> None:
    assert rounded(cost) == shown
