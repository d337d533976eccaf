import json
import signal
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast.cli.chat_output import AnswerAlone, format_call, shortened
from holdfast.cli.chat_output import Terminal as TerminalScreen
from holdfast.cli.markdown import blocks
from tests.cli.conftest import serving
from tests.cli.desk import at_desk
from tests.cli.program import MODULE, Done, Program
from tests.cli.terminal import CTRL_C, CTRL_D, Terminal
from tests.processes import Process

pytestmark = pytest.mark.req("UI-02")

AtTerminal = Callable[..., Terminal]
READY = "\n> "


def asked(program: Program, question: str, *words: str) -> Done:
    """A question by a pipe."""
    return program("chat", *words, typed=question)


def events(done: Done) -> list[dict[str, Any]]:
    """What was told with `--json`."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def session_of(done: Done) -> str:
    """The session that was talked in."""
    return events(done)[0]["session_id"]


# At a terminal


@pytest.mark.req("AGENT-01")
def test_an_answer_is_seen_as_it_comes_and_tools_in_lines_of_their_own(desk: Program, at_terminal: AtTerminal) -> None:
    chat = at_terminal(desk, "chat", "desk")
    chat.wait_for(READY)

    chat.say("Where is the parcel?")
    chat.wait_for(READY)

    assert chat.press_until_it_ends(CTRL_D) == 0
    assert (
        "> Where is the parcel?\nLet me look.\n→ track(parcel=AB-1)\n"
        '← {"parcel":"AB-1","place":"Cologne"}\nIt is in Cologne.\n> ' in chat.shown
    )


@pytest.mark.parametrize(("variables", "dims"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_whose_user_wants_them(
    desk: Program, at_terminal: AtTerminal, variables: dict[str, str], dims: bool
) -> None:
    chat = at_terminal(desk, "chat", "desk", kind="xterm", **variables)
    chat.wait_for("> ")

    chat.say("Where is the parcel?")
    chat.wait_for("It is in Cologne.")

    assert ("\x1b[2m→ track" in chat.shown) is dims


def test_a_terminal_obeys_nothing_that_an_agent_says(desk: Program, at_terminal: AtTerminal) -> None:
    chat = at_terminal(desk, "chat", "desk")
    chat.wait_for(READY)

    chat.say("Colours?")
    chat.wait_for(READY)

    assert "red \\x1b[31mand\nnext\n" in chat.shown


@pytest.mark.req("AGENT-02")
def test_how_many_memories_were_recalled_is_told(desk: Program, at_terminal: AtTerminal) -> None:
    person = f"ann-{uuid4().hex[:8]}"
    asked(desk, "I live in Bonn, near the river.", "desk", "--user", person)
    chat = at_terminal(desk, "chat", "desk", "--user", person)
    chat.wait_for(READY)

    chat.say("Where do I live, near which river?")

    chat.wait_for("Good morning.\n(1 memory recalled)")


@pytest.mark.req("AGENT-05")
@pytest.mark.parametrize(
    ("answer", "then"), [("y", "refund was approved\n← 5.00 euros for AB-1\n"), ("", "refund was denied\n← failed: ")]
)
def test_a_call_is_made_when_the_person_allows_it(
    desk: Program, at_terminal: AtTerminal, answer: str, then: str
) -> None:
    chat = at_terminal(desk, "chat", "desk")
    chat.wait_for(READY)

    chat.say("I want a refund.")
    chat.wait_for("Allow it? [y/N] ")
    chat.say(answer)

    chat.wait_for(then)
    chat.wait_for("That is settled.")


@pytest.mark.req("AGENT-01")
def test_ctrl_c_stops_an_answer_and_then_the_chat(desk: Program, at_terminal: AtTerminal) -> None:
    chat = at_terminal(desk, "chat", "desk")
    chat.wait_for(READY)

    chat.say("Count!")
    chat.wait_for("three")
    chat.press(CTRL_C)
    chat.wait_for("(stopped)\n> ")
    chat.say("Hello!")
    chat.wait_for("Good morning.")
    chat.wait_for(READY)

    assert chat.press_until_it_ends(CTRL_C) == 0


def test_a_second_ctrl_c_leaves_at_once(own_desk: Program, up: "Up", at_terminal: AtTerminal) -> None:
    server = up()
    chat = at_terminal(own_desk, "chat", "desk")
    chat.wait_for(READY)
    chat.say("Count!")
    chat.wait_for("three")
    server.send(signal.SIGSTOP)

    chat.press(CTRL_C)
    chat.wait_for("(stopping)")
    chat.press(CTRL_C)

    assert chat.wait(timeout=20) == 130
    server.send(signal.SIGCONT)


def test_a_stopped_answer_is_printed_once(desk: Program, at_terminal: AtTerminal) -> None:
    chat = at_terminal(desk, "chat", "desk")
    chat.wait_for(READY)

    chat.say("Count!")
    chat.wait_for("four")
    chat.press(CTRL_C)
    chat.wait_for("(stopped)\n> ")

    assert chat.shown.count("one two three") == 1


@pytest.mark.req("UI-05")
def test_a_message_alone_goes_to_the_agent_that_is_served(desk: Program) -> None:
    done = desk("chat", "Hello there!")

    assert (done.code, done.stdout) == (0, "Good morning.\n")


@pytest.mark.req("UI-05")
def test_pasted_text_is_one_message(desk: Program, at_terminal: AtTerminal) -> None:
    person = f"ann-{uuid4().hex[:8]}"
    chat = at_terminal(desk, "chat", "desk", "--user", person, kind="xterm")
    chat.wait_for("> ")

    chat.press("\x1b[200~first line\nsecond line\x1b[201~")
    chat.wait_for("second line")
    chat.press("\n")
    chat.wait_for("Good morning.")
    chat.wait_for("> ")
    chat.press_until_it_ends(CTRL_D)

    runs = desk("runs", "ls", "--json").json
    assert [run["question"] for run in runs if run["user"] == person] == ["first line\nsecond line"]


@pytest.mark.req("UI-05")
def test_what_was_typed_is_there_the_next_time_and_for_nobody_else(desk: Program, at_terminal: AtTerminal) -> None:
    word = uuid4().hex
    chat = at_terminal(desk, "chat", "desk")
    chat.wait_for(READY)
    chat.say(f"Hello {word}")
    chat.wait_for("Good morning.")
    chat.wait_for(READY)
    chat.press_until_it_ends(CTRL_D)

    again = at_terminal(desk, "chat", "desk", kind="xterm")
    again.wait_for("> ")
    again.press("\x1b[A")  # the key that goes up
    again.wait_for(word)

    file = desk.data / "chat_history"
    assert file.stat().st_mode & 0o777 == 0o600
    assert f"Hello {word}" in file.read_text()


@pytest.mark.req("UI-05")
def test_who_goes_on_sees_what_was_said_last(desk: Program, at_terminal: AtTerminal) -> None:
    person = f"ann-{uuid4().hex[:8]}"
    asked(desk, "Where is the parcel?", "desk", "--user", person)

    chat = at_terminal(desk, "chat", "desk", "--user", person, "-c")
    chat.wait_for(READY)

    assert f"{person}: Where is the parcel?\ndesk: Let me look.\ndesk: It is in Cologne.\n> " in chat.shown


@pytest.mark.req("UI-05")
def test_commands_lead_to_other_sessions_and_agents(desk: Program, at_terminal: AtTerminal) -> None:
    person = f"ann-{uuid4().hex[:8]}"
    chat = at_terminal(desk, "chat", "desk", "--user", person)
    chat.wait_for(READY)

    chat.say("/help")
    chat.wait_for("/sessions")
    chat.say("First words")
    chat.wait_for("Good morning.")
    chat.say("/new")
    chat.wait_for("Chat with desk.")
    chat.wait_for(READY)
    chat.say("Other words")
    chat.wait_for("Good morning.")
    chat.say("/sessions")
    chat.wait_for("* 1  Other words\n  2  First words\n")
    chat.say("/sessions 2")
    chat.wait_for(f"{person}: First words\n")
    chat.say("/agent nobody")
    chat.wait_for("There is no agent 'nobody'.\n* desk")
    chat.say("/nonsense")
    chat.wait_for("There is no /nonsense.")
    chat.wait_for(READY)

    assert chat.press_until_it_ends(CTRL_D) == 0


# For programs


def test_a_question_by_a_pipe_has_its_answer_alone_on_stdout(desk: Program) -> None:
    done = asked(desk, "Where is the parcel?\n", "desk")

    assert (done.code, done.stdout, done.stderr) == (0, "It is in Cologne.\n", "")


def test_a_question_in_the_command_has_its_answer_alone_on_stdout(desk: Program) -> None:
    done = desk("chat", "desk", "Where", "is the parcel?")

    assert (done.code, done.stdout, done.stderr) == (0, "It is in Cologne.\n", "")


@pytest.mark.req("WS-02")
def test_with_json_all_that_happens_is_told_in_lines(desk: Program) -> None:
    told = events(asked(desk, "Where is the parcel?", "desk", "--json"))

    kinds = [event["kind"] for event in told if event["kind"] != "token"]
    assert kinds == ["ready", "sent", "message", "thought", "action", "observation", "answer", "done"]
    assert {event["run_id"] for event in told[3:]} == {told[1]["run_id"]}
    assert told[-1]["usage"]["steps"] == 2


def test_an_answer_that_fails_ends_with_the_code_of_its_error(desk: Program) -> None:
    done = desk("chat", "desk", "Something wrong.", "--json")

    assert (done.code, done.error["code"]) == (6, "model_failed")
    assert "no such thing" in done.error["why"]
    assert events(done)[-1]["kind"] == "error"


@pytest.mark.req("AGENT-05")
def test_a_call_that_waits_for_approval_is_told_where_nobody_can_be_asked(desk: Program) -> None:
    waits = desk("chat", "desk", "I want a refund.", "--json")

    approval = waits.error["details"]["approval_id"]
    decided = desk("approvals", "approve", approval, "--json")
    goes_on = desk("chat", "desk", "Hello!", "--session", session_of(waits))
    said = desk("sessions", "show", session_of(waits)).stdout

    assert (waits.code, waits.error["code"]) == (4, "forbidden")
    assert f"holdfast approvals approve {approval}" in waits.error["next"]
    assert decided.json["state"] == "approved"
    assert goes_on.stdout == "Good morning.\n"
    assert "5.00 euros for AB-1" in said
    assert "That is settled." in said


@pytest.mark.req("STM-05")
def test_the_last_session_is_gone_on_with_where_that_is_wanted(desk: Program) -> None:
    first = desk("chat", "desk", "Hello!", "--json")
    again = desk("chat", "desk", "Hello again!", "-c", "--json")
    other = desk("chat", "desk", "Good bye!", "--json")
    named = desk("chat", "desk", "Once more!", "--session", session_of(first), "--json")
    last = desk("chat", "desk", "-c", "The end.", "--json")

    assert session_of(again) == session_of(first) == session_of(named) == session_of(last)
    assert session_of(other) != session_of(first)
    assert len(desk("sessions", "show", session_of(first), "--json").json) == 8


def test_nobody_talks_in_another_s_session(desk: Program) -> None:
    hers = desk("chat", "desk", "Hello!", "--user", "ann", "--json")

    his = desk("chat", "desk", "Hello!", "--user", "bob", "--session", session_of(hers), "--json")

    (of_ann,), (of_bob,) = (
        [
            talk
            for talk in desk("sessions", "ls", "--user", user, "--json").json
            if talk["session_id"] == session_of(hers)
        ]
        for user in ("ann", "bob")
    )
    assert session_of(his) == session_of(hers)
    assert of_ann["id"] != of_bob["id"]


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nobody", "Hello!"], 3, "there is no agent 'nobody'"),
        (["desk", " "], 2, "the message is empty"),
        (["desk"], 2, "the message is empty"),
        (["desk", "Hello!", "-c", "--session", "x"], 2, "either -c or --session"),
        (["desk", "Hello!", "--user", "a\nb"], 2, "--user"),
        (["desk", "Hello!", "--tenant", "nobody"], 3, "the tenant 'nobody' does not exist"),
    ],
)
def test_what_cannot_be_said_is_refused(desk: Program, words: list[str], code: int, said: str) -> None:
    done = asked(desk, "", *words)

    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr


@pytest.mark.parametrize("size", [1_000_001, 5_000_000])
def test_what_is_too_long_is_refused(desk: Program, size: int) -> None:
    done = asked(desk, "x" * size, "desk")

    assert (done.code, done.stdout) == (2, "")
    assert "too large" in done.stderr


# Without a server


@pytest.mark.req("AGENT-03")
def test_without_a_server_the_default_agent_answers_and_remembers(prepared: Program) -> None:
    prepared("chat", "default", "I live in Bonn.")

    done = prepared("chat", "default", "Where do I live?")

    assert (done.code, done.stderr) == (0, "")
    assert "I live in Bonn." in done.stdout


def test_without_a_server_a_person_can_talk_too(prepared: Program, at_terminal: AtTerminal) -> None:
    chat = at_terminal(prepared, "chat")
    chat.wait_for(READY)

    chat.say("Hello!")
    chat.wait_for("offline model")
    chat.wait_for(READY)

    assert chat.press_until_it_ends(CTRL_D) == 0


def test_an_agent_that_nobody_serves_is_told(own_desk: Program, up: "Up") -> None:
    server = up()
    server.send(signal.SIGINT)
    server.wait()

    done = own_desk("chat", "desk", "Hello!", "--json")

    assert (done.code, done.error["code"]) == (6, "unavailable")
    assert "holdfast up APP" in done.error["next"]


def test_a_message_that_nobody_takes_up_is_told(own_desk: Program, up: "Up", at_terminal: AtTerminal) -> None:
    up().kill()
    up("--no-agents")
    chat = at_terminal(own_desk, "chat", "desk")
    chat.wait_for(READY)

    chat.say("Hello!")

    chat.wait_for("(Nobody has taken it up yet.")


@pytest.mark.req("UI-05")
def test_an_agent_of_a_former_start_is_marked_never_chosen_and_does_not_answer_in_silence(
    own_desk: Program, at_terminal: AtTerminal
) -> None:
    with serving(own_desk):  # without an app: it brings `default`
        assert asked(own_desk, "Hello!").code == 0
    with serving(own_desk, "desk.py"):
        agents = {agent["name"]: agent["served"] for agent in own_desk("agents", "ls", "--json").json}
        chosen = own_desk("chat", "--json", typed="Hello!")
        named = own_desk("chat", "default", "Hello?", "--json")
        chat = at_terminal(own_desk, "chat", "default")
        chat.wait_for(READY)
        chat.say("Hello?")
        chat.wait_for("(no process serves the agent default")
        chat.wait_for(READY)

    assert agents == {"default": False, "desk": True}
    assert (chosen.code, events(chosen)[0]["agent"]) == (0, "desk")
    assert (named.code, named.error["code"]) == (6, "unavailable")
    assert "no process serves the agent default" in named.error["what"]


# When the server goes

Up = Callable[..., Process]


@pytest.fixture
def own_desk(tmp_path: Path, fast_folder: Path) -> Program:
    """The program on a data folder of this test alone, with turns that are soon taken over."""
    program = at_desk(tmp_path, fast_folder / uuid4().hex)
    program.environment["HOLDFAST_AGENTS__LEASE"] = "1"
    return program


@pytest.fixture
def up(own_desk: Program) -> Iterator[Up]:
    """Starts `holdfast up desk.py`, and ends it with the test."""
    started: list[Process] = []

    def start(*words: str, port: str = "0") -> Process:
        words = ("up", "desk.py", "--json", "--port", port, *words)
        started.append(Process([*MODULE, *words], own_desk.environment, own_desk.folder))
        started[-1].wait_for('"url"')
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.mark.req("WS-02", "AGENT-01")
def test_a_chat_goes_on_when_the_server_was_killed_in_the_middle_of_an_answer(
    own_desk: Program, up: Up, at_terminal: AtTerminal
) -> None:
    server = up()
    port = json.loads(server.stdout)["url"].rpartition(":")[2]
    chat = at_terminal(own_desk, "chat", "desk")
    chat.wait_for(READY)
    chat.say("Recite!")
    chat.wait_for("4 5 6")

    server.kill()
    chat.wait_for("(the connection broke, trying again)")
    up(port=port)

    chat.wait_for("38 39\n> ")
    chat.say("Hello!")
    chat.wait_for("Good morning.\n> ")
    said = chat.shown
    assert said.count("Good morning.") == said.count("(connected again)") == said.count("38 39") == 1


# Pure


def test_a_call_is_shown_as_a_person_would_write_it() -> None:
    plain = format_call({"tool": "track", "arguments": {"parcel": "AB-1", "days": 3, "note": "", "list": [1, "ß"]}})

    assert plain == 'track(parcel=AB-1, days=3, note="", list=[1, "ß"])'
    assert format_call({"tool": "now"}) == "now()"
    assert format_call({"tool": "raw", "arguments": "{broken"}) == "raw({broken)"


def test_what_is_long_is_shortened_to_one_line() -> None:
    assert shortened("a\n  b\tc") == "a b c"
    assert shortened("x" * 1000) == "x" * 200 + "…"


def test_no_answer_but_the_first_to_the_question_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    screen = AnswerAlone(sys.stdout, sys.stderr)

    screen.show({"kind": "sent", "run_id": "1"})
    screen.show({"kind": "answer", "run_id": "2", "text": "another's"})
    screen.show({"kind": "answer", "run_id": "1", "text": "ours"})
    screen.show({"kind": "answer", "run_id": "1", "text": "edited", "version": 2})

    assert capsys.readouterr().out == "ours\n"


# Markdown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one", ["one"]),
        ("one\n\ntwo", ["one", "two"]),
        ("one\n\n\ntwo\n", ["one", "\ntwo\n"]),
        ("```\na\n\nb\n```\n\nend", ["```\na\n\nb\n```", "end"]),
        ("~~~\na\n\n```\n\nb", ["~~~\na\n\n```\n\nb"]),
    ],
)
def test_a_text_is_cut_at_blank_lines_outside_of_code(text: str, found: list[str]) -> None:
    assert blocks(text) == found


@pytest.mark.req("UI-05")
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_markdown_is_shown_and_not_its_signs_however_it_comes(size: int) -> None:
    text = "# Title\n\nSome **bold** words, \x1b[31mred.\n\n- one\n- two\n"
    stream = StringIO()
    screen = TerminalScreen(stream, colour=True)

    for start in range(0, len(text), size):
        screen.show({"kind": "token", "text": text[start : start + size]})
    screen.show({"kind": "answer", "text": text})

    shown = stream.getvalue()
    assert "**" not in shown
    assert shown.count("Title") == 1
    assert "Some bold words, \\x1b[31mred." in shown
    assert " • one" in shown
