"""`holdfast mcp`: the engine as an MCP server over standard input and output, message by message."""

import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from holdfast.mcp.protocol import (
    CAPABILITIES,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    MODERN,
    PARSE_ERROR,
    SUBSCRIPTION,
    VERSION,
)
from holdfast.postgres.embedded import EmbeddedServer
from tests.cli.program import MODULE, Program

PATIENCE = 60  # seconds: a busy machine is no failure, and the first answer comes when the program has started
SHOP = """
import asyncio
import os
import subprocess
import sys

import holdfast

app = holdfast.App("shop")
print("a line of the app itself")


@app.tool(access="read")
async def track(parcel: str) -> str:
    '''Where a parcel is.'''
    return f"{parcel} is in Cologne"


@app.tool
def noisy() -> str:
    '''Prints, and starts something that prints and reads.'''
    print("a line that is no message")
    os.write(1, b"another\\n")
    said = subprocess.run("echo a third; cat", shell=True)
    return f"cat ended with {said.returncode}"


@app.tool
async def count(run: holdfast.Run, to: int) -> str:
    '''Says how far it is.'''
    for number in range(to):
        await run.client.progress(number, total=to, message="x" * 1000)
    return "done"


@app.tool
async def wait() -> str:
    '''Waits for ever.'''
    print("wait has begun", file=sys.stderr, flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("wait has ended", file=sys.stderr, flush=True)


@app.tool
async def refund(order: str, run: holdfast.Run) -> str:
    '''Asks first.'''
    reply = await run.client.elicit("sure", f"Pay back {order}?", {"type": "object", "properties": {}})
    return f"{order}: {reply.action}"


app.agent("support", tools=[track], memory=False)
"""
OTHER = """
import holdfast

app = holdfast.App("other")


@app.tool
async def another() -> str:
    '''Another tool.'''
    return "here"
"""


class Local:
    """A client that has started the program, and talks to it."""

    def __init__(self, program: Program, *words: str) -> None:
        self._process = subprocess.Popen(
            [*MODULE, "mcp", *words],
            cwd=program.folder,
            env=program.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._complained: list[bytes] = []
        self._news = threading.Condition()
        for work in (self._hear, self._complain):
            threading.Thread(target=work, daemon=True).start()

    def send(self, message: Any) -> None:
        """Write a message, or bytes as they are."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        pipe = cast(Any, self._process.stdin)
        pipe.write(line + b"\n")
        pipe.flush()

    def next(self) -> dict[str, Any]:
        """The next line, which is a message."""
        line = self._heard.get(timeout=PATIENCE)
        assert line, f"it has ended: {b''.join(self._complained).decode()}"
        return json.loads(line)

    def ask(self, id: int, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request."""
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        answer = self.next()
        assert answer["id"] == id, answer
        return answer

    def call(self, id: int, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer to a modern call of a tool."""
        return self.ask(id, "tools/call", **modern(), name=name, arguments=arguments)

    def initialize(self, **capabilities: Any) -> dict[str, Any]:
        """Open a session as clients before the modern era do."""
        info = {"name": "test", "version": "1"}
        answer = self.ask(1, "initialize", protocolVersion=LEGACY[0], capabilities=capabilities, clientInfo=info)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def wait_for(self, text: bytes) -> None:
        """Wait until it has said `text` to whoever started it."""
        with self._news:
            assert self._news.wait_for(lambda: text in b"".join(self._complained), PATIENCE), self._complained

    def terminate(self) -> int:
        """Ask it to end: the code it ends with."""
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            cast(Any, pipe).close()

    def _hear(self) -> None:
        for line in cast(Any, self._process.stdout):
            self._heard.put(line)
        self._heard.put(b"")

    def _complain(self) -> None:
        for line in cast(Any, self._process.stderr):
            with self._news:
                self._complained.append(line)
                self._news.notify_all()


def modern(**capabilities: Any) -> dict[str, Any]:
    """What a modern client says of itself with each request."""
    return {"_meta": {VERSION: MODERN, CAPABILITIES: capabilities}}


def text_of(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, fast_folder: Path) -> Iterator[Program]:
    """The program on a migrated database of this module, in a folder with an app."""
    program = Program(tmp_path_factory.mktemp("home"), fast_folder / uuid4().hex)
    (program.folder / "shop.py").write_text(SHOP)
    with EmbeddedServer(program.data):
        assert program("db", "migrate").code == 0
        yield program


@pytest.fixture(scope="module")
def running(shop: Program) -> Iterator[Local]:
    """One that all modern requests of this module go to."""
    local = Local(shop, "shop.py")
    yield local
    local.kill()


@pytest.fixture
def local(shop: Program) -> Iterator[Local]:
    """One of the test's own."""
    local = Local(shop, "shop.py")
    yield local
    local.kill()


@pytest.mark.req("MCP-01")
def test_a_modern_client_needs_no_handshake(running: Local) -> None:
    found = running.ask(1, "server/discover", **modern())
    called = running.call(2, "track", parcel="AB-1")

    assert MODERN in found["result"]["supportedVersions"]
    assert called["result"]["resultType"] == "complete"
    assert text_of(called) == "AB-1 is in Cologne"


@pytest.mark.req("MCP-01")
def test_what_a_tool_prints_is_no_part_of_the_protocol(running: Local) -> None:
    answer = running.call(3, "noisy")

    assert text_of(answer) == "cat ended with 0"


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no JSON", PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (b"[" * 1000 + b"]" * 1000, PARSE_ERROR),
        (b'"' + b"x" * 9_000_000 + b'"', PARSE_ERROR),
        (b"42", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (b'{"jsonrpc": "1.0", "id": null, "method": "ping"}', INVALID_REQUEST),
    ],
    ids=["words", "no UTF-8", "too deep", "too long", "a number", "a batch", "another protocol"],
)
def test_a_line_that_is_no_message_is_refused_and_the_next_is_answered(running: Local, line: bytes, code: int) -> None:
    running.send(line)
    refused = running.next()
    after = running.call(4, "track", parcel="AB-2")

    assert (refused["id"], refused["error"]["code"]) == (None, code)
    assert text_of(after) == "AB-2 is in Cologne"


@pytest.mark.req("MCP-01")
def test_empty_lines_mean_nothing(running: Local) -> None:
    running.send(b"\n\r\n ")

    assert text_of(running.call(5, "track", parcel="AB-3")) == "AB-3 is in Cologne"


@pytest.mark.req("MCP-01")
def test_a_request_that_says_neither_version_nor_hello_is_told_what_to_do(running: Local) -> None:
    refused = running.ask(6, "tools/list")

    assert refused["error"]["code"] == INVALID_PARAMS
    assert "initialize" in refused["error"]["message"]


@pytest.mark.req("MCP-01")
def test_a_modern_client_is_asked_by_the_answer(running: Local) -> None:
    request = {"name": "refund", "arguments": {"order": "7"}}
    asked = running.ask(7, "tools/call", **modern(elicitation={}), **request)["result"]
    state: dict[str, Any] = {
        "requestState": asked["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {}}},
    }
    paid = running.ask(8, "tools/call", **modern(elicitation={}), **request, **state)

    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["sure"]["params"]["message"] == "Pay back 7?"
    assert text_of(paid) == "7: accept"


@pytest.mark.req("MCP-01")
def test_a_client_is_told_how_far_a_call_is(running: Local) -> None:
    request = {"name": "count", "arguments": {"to": 3}, "_meta": {**modern()["_meta"], "progressToken": "p"}}
    running.send({"jsonrpc": "2.0", "id": 11, "method": "tools/call", "params": request})

    told = [running.next() for _ in range(4)]

    assert [(each["params"]["progressToken"], each["params"]["progress"]) for each in told[:3]] == [
        ("p", 0),
        ("p", 1),
        ("p", 2),
    ]
    assert (told[3]["id"], text_of(told[3])) == (11, "done")


@pytest.mark.req("MCP-01")
def test_a_client_that_listens_hears_what_changes(shop: Program, running: Local) -> None:
    wanted = {"notifications": {"toolsListChanged": True}}
    running.send({"jsonrpc": "2.0", "id": 12, "method": "subscriptions/listen", "params": {**modern(), **wanted}})
    acknowledged = running.next()
    (shop.folder / "other.py").write_text(OTHER)
    shop("mcp", "other.py")  # comes with a tool, and goes
    changed = running.next()
    running.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12}})

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"][SUBSCRIPTION] == 12
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"][SUBSCRIPTION] == 12


@pytest.mark.req("MCP-01")
def test_what_is_cancelled_stops_and_is_never_answered(running: Local) -> None:
    running.send(
        {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {**modern(), "name": "wait", "arguments": {}}}
    )
    running.wait_for(b"wait has begun")
    running.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
    running.wait_for(b"wait has ended")

    assert text_of(running.call(10, "track", parcel="AB-4")) == "AB-4 is in Cologne"


@pytest.mark.req("MCP-01")
def test_a_client_of_the_era_before_says_hello_and_is_asked_on_the_way(local: Local) -> None:
    hello = local.initialize(elicitation={})
    local.send(
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": "8"}}}
    )
    question = local.next()
    local.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    answer = local.next()
    modern_too = local.call(3, "track", parcel="AB-5")
    code = local.terminate()

    assert hello["protocolVersion"] == LEGACY[0]
    assert hello["serverInfo"]["name"] == "holdfast"
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Pay back 8?"
    assert (answer["id"], text_of(answer)) == (2, "8: decline")
    assert text_of(modern_too) == "AB-5 is in Cologne"
    assert code == 0


@pytest.mark.req("MCP-01")
def test_it_ends_with_its_input_having_answered_what_was_asked(shop: Program) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern()}

    done = shop("mcp", "shop.py", typed=json.dumps(request))  # without an end of the line

    assert done.code == 0
    [line] = done.stdout.splitlines()
    assert {"track", "search_tools"} <= {tool["name"] for tool in json.loads(line)["result"]["tools"]}


@pytest.mark.req("MCP-01", "MCP-07")
def test_an_agent_sees_its_own_tools(shop: Program) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern()}

    done = shop("mcp", "shop.py", "--agent", "support", typed=json.dumps(request))

    names = {tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]}
    assert "track" in names
    assert "refund" not in names


@pytest.mark.req("MCP-01")
def test_an_agent_that_is_not_there_is_refused(shop: Program) -> None:
    done = shop("mcp", "--agent", "nobody")

    assert done.code != 0
    assert "there is no agent 'nobody'" in done.stderr
    assert done.stdout == ""
