import json
import os
import shutil
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.postgres.folder import DataFolder
from tests.cli.desk import APP as DESK
from tests.cli.desk import at_desk
from tests.cli.program import MODULE, Program
from tests.processes import Process, servers_on, wait_until_gone

pytestmark = pytest.mark.req("ENG-01", "UI-02")

SHOP = DESK.with_name("shop.py")
DEAF = """
import asyncio

import holdfast

app = holdfast.App()


async def wait(parcel: str) -> None:
    '''Wait for a parcel.'''
    print("it has begun", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


app.agent("deaf", tools=[wait])
"""

Start = Callable[..., Process]


@pytest.fixture
def start(holdfast: Program) -> Iterator[Start]:
    """Starts `holdfast up` on a free port, and ends it with the test."""
    started: list[Process] = []

    def start(*words: str) -> Process:
        port = [] if "--port" in words else ["--port", "0"]
        started.append(Process([*MODULE, "up", *port, *words], holdfast.environment, holdfast.folder))
        return started[-1]

    yield start
    for process in started:
        process.end()


def test_words_go_to_stderr_and_ctrl_c_leaves_nothing_behind(holdfast: Program, start: Start) -> None:
    server = start()
    server.wait_for("Ctrl-C stops it.")
    processes = servers_on(holdfast.data)

    server.send(signal.SIGINT)
    code = server.wait()

    wait_until_gone(*processes)
    assert (code, server.stdout) == (0, "")
    assert f"data     {holdfast.data}, with an embedded PostgreSQL" in server.stderr
    assert "  agents   default\n" in server.stderr
    assert "reduced  embeddings: English by words only" in server.stderr
    assert "reduced  model: the offline model answers" in server.stderr
    assert "HOLDFAST_LLM__MODEL" in server.stderr
    assert "sign in" not in server.stderr
    assert processes
    assert not DataFolder(holdfast.data).server_file.exists()


def test_with_json_one_line_tells_where_it_is(holdfast: Program, start: Start) -> None:
    server = start("--json")
    server.wait_for("}\n")

    ready = json.loads(server.stdout)

    with urllib.request.urlopen(f"{ready['url']}/readyz", timeout=10) as answer:
        assert answer.status == 200
    assert (ready["pid"], ready["data"]) == (server.pid, str(holdfast.data))
    states = {part["name"]: part["state"] for part in ready["parts"]}
    assert (states["database"], states["embeddings"]) == ("ok", "reduced")
    assert server.stderr == ""


def test_a_second_server_says_who_has_the_port_before_it_touches_the_data(holdfast: Program, start: Start) -> None:
    first = start("--json")
    first.wait_for("}\n")
    port = json.loads(first.stdout)["url"].rpartition(":")[2]

    refused = holdfast("up", "--port", port, "--data", "elsewhere", "--json")

    assert (refused.code, refused.error["code"]) == (6, "port_taken")
    assert f"process {first.pid} listens on it" in refused.error["why"]
    assert not (holdfast.folder / "elsewhere").exists()


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("form", [("--json",), ()])
def test_a_log_gets_no_link_to_sign_in(start: Start, holdfast: Program, form: Sequence[str]) -> None:
    server = start("--require-key", "--root-path", "/x", *form)
    server.wait_for("}\n" if form else "Ctrl-C stops it.")

    made = holdfast("keys", "link")

    assert "link=" not in server.stdout + server.stderr
    assert form or "`holdfast keys link` makes a link" in server.stderr
    with urllib.request.urlopen(made.stdout.strip(), timeout=10) as answer:
        assert b"Sign in" in answer.read()


def test_a_tenant_that_is_not_there_stops_the_start(holdfast: Program) -> None:
    done = holdfast("up", "--port", "0", "--tenant", "nobody", "--json")

    assert (done.code, done.stdout, done.error["code"]) == (3, "", "not_found")


def test_a_database_that_is_away_stops_the_start(holdfast: Program) -> None:
    environment = {"HOLDFAST_DATABASE_URL": "postgresql://x@127.0.0.1:1/x", "HOLDFAST_DATABASE__CONNECT_TIMEOUT": "1"}

    done = holdfast("up", "--port", "0", "--json", environment=environment)

    assert (done.code, done.stdout, done.error["code"]) == (6, "", "database_away")


@pytest.mark.skipif(os.name != "posix", reason="ports are shared in another way there")
def test_a_port_of_another_program_is_told_with_its_process(holdfast: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = holdfast("up", "--port", str(other.getsockname()[1]))

    assert (done.code, done.stdout) == (6, "")
    assert f"process {os.getpid()} listens on it" in done.stderr


@pytest.mark.parametrize("name", ["desk.py", "desk", "desk:app", "./desk.py:app"])
def test_an_app_is_served_by_any_of_its_names(holdfast: Program, start: Start, name: str) -> None:
    shutil.copy(DESK, holdfast.folder / "desk.py")

    server = start(name, "--json")
    server.wait_for("}\n")

    ready = json.loads(server.stdout)
    assert (ready["agents"], ready["skills"]) == (["desk"], ["label"])


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        ("nowhere", "there is no module nowhere"),
        ("shop.py", "shop.py has 2 apps: they are app, empty. Name one"),
        ("shop:empty", "shop:empty has no agents"),
    ],
)
def test_an_app_that_cannot_be_served_is_told_before_anything_starts(holdfast: Program, name: str, said: str) -> None:
    shutil.copy(SHOP, holdfast.folder / "shop.py")

    done = holdfast("up", name, "--port", "0")

    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr
    assert not holdfast.data.exists()


@pytest.mark.req("AGENT-01")
def test_agents_are_served_where_they_are_wanted_and_nowhere_else(holdfast: Program, start: Start) -> None:
    without = start("--no-agents", "--json")
    without.wait_for("}\n")
    nobody = holdfast("agents", "ls", "--json").json
    without.send(signal.SIGINT)
    without.wait()
    holdfast("tenants", "create", "acme")
    server = start("--tenant", "acme", "--json")
    server.wait_for("}\n")

    hers = holdfast("chat", "default", "Hello!", "--tenant", "acme")
    others = holdfast("chat", "default", "Hello!", "--tenant", "default")

    assert "agents" not in json.loads(without.stdout)
    assert nobody == []
    assert hers.code == 0
    assert "offline model" in hers.stdout
    assert others.code == 3


@pytest.mark.req("AGENT-01", "WS-02")
def test_a_run_that_is_cut_off_by_the_end_is_given_back_at_once(holdfast: Program, start: Start) -> None:
    desk = at_desk(holdfast.folder, holdfast.data)
    holdfast.environment |= desk.environment | {"HOLDFAST_AGENTS__LEASE": "3600"}
    server = start("desk.py", "--json")
    server.wait_for("}\n")
    chat = Process([*MODULE, "chat", "desk", "Recite!", "--json"], holdfast.environment, holdfast.folder)
    try:
        chat.wait_for(' 3"')

        server.send(signal.SIGINT)
        code = server.wait()
        start("desk.py")
        answered = chat.wait()
    finally:
        chat.end()

    told = [json.loads(line) for line in chat.stdout.splitlines()]
    assert (code, answered) == (0, 0)
    assert [event["text"] for event in told if event["kind"] == "answer"] == [" ".join(map(str, range(40)))]


@pytest.mark.req("AGENT-01")
def test_a_tool_that_never_ends_does_not_keep_the_process(holdfast: Program, start: Start) -> None:
    holdfast.environment["HOLDFAST_SERVER__SHUTDOWN_GRACE"] = "1"
    (holdfast.folder / "deaf.py").write_text(DEAF)
    server = start("deaf.py", "--json")
    server.wait_for("}\n")
    chat = Process([*MODULE, "chat", "deaf", "Wait for AB-1!"], holdfast.environment, holdfast.folder)
    try:
        server.wait_for("it has begun")

        server.send(signal.SIGINT)
        code = server.wait(timeout=30)
    finally:
        chat.end()

    assert code == 0
