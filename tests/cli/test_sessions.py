"""Sessions, each test with a running server and without one: there must be no difference."""

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from holdfast.cli.api import Api
from holdfast.cli.servers import Server
from holdfast.cli.sessions import format_node
from holdfast.core.config import load_config
from holdfast.core.errors import Unavailable
from holdfast.engine import open_engine
from tests.cli.page import Page
from tests.cli.program import MODULE, Program

pytestmark = pytest.mark.req("UI-02", "CONV-09")

ROOT = Path(__file__).parents[2]
HOSTILE = "nul\0 half \ud83d and \x1b[31mred\r\nnext"


@pytest.fixture
async def talk(served: Program) -> str:
    """The session of a conversation of ann's with `süpport`."""
    session = f"web {uuid4().hex[:8]}/ä"
    call = {"id": "1", "name": "track", "arguments": {"parcel": "ß"}}
    async with open_engine(config=load_config({"data": served.data}, environ={}, cwd=served.folder)) as engine:
        made = await engine.conversations.create(app="shop", user="ann", agent="süpport", session_id=session)
        append = engine.conversations.append
        await append(made.id, "Where is it?\nI wait.", context="text:user:ann")
        await append(made.id, "", context="text:agent:süpport", payload={"tool_calls": [call]})
        await append(made.id, HOSTILE, context="text:agent:tool", payload={"tool_call_id": "1"})
        slip = await append(made.id, "Oops.", context="text:agent:süpport")
        await engine.conversations.delete(slip.id, version=1)
    return session


def words(done: str) -> str:
    """What was printed, without dates."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE", done)


def test_conversations_are_listed_by_user_app_and_agent(served: Program, talk: str) -> None:
    table = served("sessions", "ls", "--user", "ann", "--app", "shop", "--agent", "süpport", "--limit", "1")
    others = served("sessions", "ls", "--user", "bob", "--json")
    record = served("sessions", "ls", "--json").json[0]

    assert table.stdout.split("\n")[0].split() == ["SESSION", "APP", "USER", "AGENT", "NODES", "CHANGED"]
    assert table.stdout.split("\n")[1].startswith(talk)
    assert others.json == []
    assert (record["session_id"], record["user"], record["last_seq"]) == (talk, "ann", 4)


def test_who_said_what_is_shown_and_a_terminal_obeys_none_of_it(served: Program, talk: str) -> None:
    done = served("sessions", "show", talk)

    assert words(done.stdout) == (
        "1  ann (user), DATE\n    Where is it?\n    I wait.\n\n"
        '2  süpport (agent), DATE\n    calls track {"parcel": "ß"}\n\n'
        "3  tool (agent), DATE\n    nul\\x00 half \\ud83d and \\x1b[31mred\n    next\n\n"
        "4  süpport (agent), DATE\n    (deleted)\n\n"
    )
    assert done.stderr == ""


def test_nodes_are_found_by_what_they_say_each_with_its_session(served: Program, talk: str) -> None:
    done = served("sessions", "search", "I WAIT", "--user", "ann", "--limit", "1")
    record = served("sessions", "search", "i wait", "--agent", "süpport", "--json").json[0]
    none = served("sessions", "search", "--user", "bob", "--", "-x")

    assert words(done.stdout) == f"{talk}  1  ann (user), DATE\n    Where is it?\n    I wait.\n\n"
    assert (record["conversation"]["session_id"], record["node"]["seq"]) == (talk, 1)
    assert (none.code, none.stdout) == (0, "")


def test_a_conversation_is_shown_by_its_own_id_too_and_as_nodes(served: Program, talk: str) -> None:
    nodes = served("sessions", "show", talk, "--json").json

    by_id = served("sessions", "show", nodes[0]["root"], "--json")

    assert by_id.json == nodes
    assert [node["seq"] for node in nodes] == [1, 2, 3, 4]
    assert nodes[2]["content"] == HOSTILE


@pytest.mark.req("CONV-08")
def test_a_fork_s_session_is_alone_on_stdout(served: Program, talk: str) -> None:
    named = served("sessions", "fork", talk, "--at", "1", "--session-id", f"{talk} again")
    made = served("sessions", "fork", talk)

    assert named.stdout == f"{talk} again\n"
    assert "at node 1" in named.stderr
    assert len(served("sessions", "show", f"{talk} again", "--json").json) == 1
    assert len(served("sessions", "show", made.stdout.strip(), "--json").json) == 4


@pytest.mark.req("CONV-04", "ENG-08")
def test_an_export_is_lines_of_json(served: Program, talk: str) -> None:
    done = served("sessions", "export", talk)

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["conversation"]["session_id"] == talk
    assert [line["node"]["seq"] for line in lines[1:]] == [0, 1, 2, 3, 4]
    assert lines[4]["node"]["content"] == HOSTILE
    assert lines[5]["former"][0]["content"] == "Oops."


@pytest.fixture
async def long_talk(served: Program) -> str:
    """The session of a conversation that is more than a pipe holds."""
    session = uuid4().hex
    async with open_engine(config=load_config({"data": served.data}, environ={}, cwd=served.folder)) as engine:
        talk = await engine.conversations.ensure(session)
        for _ in range(3):
            await engine.conversations.append(talk.id, "x" * 1_000_000, context="text:user:ann")
    return session


def test_who_reads_no_further_ends_an_export_without_a_word(served: Program, long_talk: str) -> None:
    command = [*MODULE, "sessions", "export", long_talk]
    with subprocess.Popen(
        command, env=served.environment, cwd=served.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as export:
        assert export.stdout is not None
        assert export.stderr is not None
        first = export.stdout.readline()
        export.stdout.close()
        said = export.stderr.read()

    assert json.loads(first)["conversation"]["session_id"] == long_talk
    assert (export.returncode, said) == (1, b"")


@pytest.fixture
def half_a_server() -> Iterator[str]:
    """The address of a server that ends in the middle of its answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")

        answering = Thread(target=answer)
        answering.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        answering.join()


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(half_a_server: str) -> None:
    parts: list[bytes] = []

    with pytest.raises(Unavailable):
        await Api(Server(half_a_server, {})).download("export_memories", parts.append)

    assert parts == [b"half"]


@pytest.mark.parametrize("command", [["show"], ["fork"], ["export"], ["fork", "--at", "1"]])
@pytest.mark.parametrize("session", ["nobody has heard of it", str(uuid4()), ""], ids=["name", "id", "nothing"])
def test_an_unknown_session_is_not_found(served: Program, command: list[str], session: str) -> None:
    done = served("sessions", *command, session, "--json")

    assert (done.code, done.stdout, done.error["code"]) == (3, "", "not_found")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["show", "\udcff"], 2),
        (["ls", "--limit", "0"], 2),
        (["ls", "--limit", "1001"], 2),
        (["ls", "--user", ""], 2),
        (["fork", "{talk}", "--at", "-1"], 2),
        (["fork", "{talk}", "--at", "5"], 3),
        (["fork", "{talk}", "--session-id", "{talk}"], 5),
    ],
)
def test_what_cannot_be_done_is_refused(served: Program, talk: str, options: list[str], code: int) -> None:
    done = served("sessions", *(option.replace("{talk}", talk) for option in options))

    assert (done.code, done.stdout) == (code, "")
    assert done.stderr


def test_a_tenant_s_sessions_are_its_own(served: Program, talk: str) -> None:
    tenant = f"t-{uuid4().hex[:8]}"
    served("tenants", "create", tenant)

    assert served("sessions", "ls", "--tenant", tenant, "--json").json == []
    assert served("sessions", "show", talk, "--tenant", tenant).code == 3


def test_a_list_that_goes_on_says_so(served: Program, talk: str) -> None:
    served("sessions", "fork", talk)

    done = served("sessions", "ls", "--limit", "1")

    assert "There are more than these 1" in done.stderr


def test_a_node_without_a_word_has_a_line_of_its_own_still() -> None:
    node: dict[str, Any] = {
        "seq": 7,
        "context": "event:agent:a:b",
        "content": "",
        "payload": None,
        "deleted": False,
        "created_at": "2026-01-01T00:00:00Z",
    }

    assert words(format_node(node)) == "7  a:b (agent), DATE\n\n"


@pytest.mark.parametrize("tool", ["curl", "jq"])
def test_what_the_page_uses_is_here(tool: str) -> None:
    if shutil.which(tool) is None:
        assert not os.environ.get("CI"), f"{tool} is missing: docs/conversations.md was not tried"
        pytest.skip(f"{tool} is missing: docs/conversations.md is not tried")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is missing")
def test_every_example_of_the_page_works(served: Program, tmp_path: Path) -> None:
    page = Page("conversations.md", served, tmp_path)

    said = [done.stderr for done in page.run_all()]

    assert [text.replace("Forked parcel-7 at node 2:\n", "") for text in said] == ["", "", ""]
    assert page.languages == ["python", "sh", "sh"]
    lines = [json.loads(line) for line in (tmp_path / "parcel-7.jsonl").read_text("utf-8").splitlines()]
    assert [line["node"]["content"] for line in lines[2:] if "node" in line] == [
        "Where is my parcel?",
        "It arrives today.",
        "Thanks!",
        "One more thing.",
        "",
        "Done.",
    ]


def test_nobody_forges_a_line_by_their_name() -> None:
    node = {"context": "text:agent:x\n2  ann (user), now", "seq": 1, "content": "hi", "payload": None, "deleted": False}

    told = format_node({**node, "created_at": "2026-01-01T00:00:00+00:00"})

    assert [line for line in told.split("\n") if line and not line.startswith(" ")] == [told.split("\n")[0]]
    assert told.startswith("1  'x\\n2  ann (user), now' (agent)")
