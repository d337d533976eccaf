import asyncio
import json
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from holdfast.core.config import Config
from holdfast.server import connections, serving, socket_connections
from tests.agents.stage import Player
from tests.processes import Process, Processes
from tests.server.socket_client import UPGRADE, client, closed, kinds, text_of
from tests.server.wire import PATIENCE, Site

PROGRAM = """
from holdfast import App
from holdfast.core.config import load_config
from holdfast.engine import open_engine
from holdfast.server.port import bind
from holdfast.server.serving import run, serve

app = App()
app.agent("support", memory=False)

async def main():
    async with open_engine(config=config) as engine:
        engine = engine.tenant(await engine.tenants.id_of("default"))
        async with engine.serving(app):
            await serve(engine, listener, config, lambda file: print("ready", file.url, flush=True))

config = load_config()
listener = bind(config)
run(main())
print("ended", flush=True)
"""

Start = Callable[[], tuple[Process, Site]]


@pytest.fixture
def start(processes: Processes, config: Config, tmp_path: Path) -> Start:
    """Starts a server with an agent that speaks slowly, in a process of its own."""
    script = tmp_path / "script.jsonl"
    lines = [{"by": "step"}, {"text": "one two three four five six seven eight", "chunks": 8, "delay": 0.25}]
    script.write_text("\n".join(map(json.dumps, lines)))

    def start() -> tuple[Process, Site]:
        assert config.database.url is not None
        environment = {
            "HOLDFAST_DATABASE_URL": config.database.url.get_secret_value(),
            "HOLDFAST_DATA": str(tmp_path / f"data-{len(list(tmp_path.iterdir()))}"),
            "HOLDFAST_SERVER__PORT": "0",
            "HOLDFAST_SERVER__SHUTDOWN_GRACE": "5",
            "HOLDFAST_LLM__MODEL": f"scripted:{script}",
            "HOLDFAST_MEMORY__EMBEDDING__FETCH": "false",
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        }
        process = processes.start("-c", PROGRAM, environment=environment)
        process.wait_for("ready")
        found = re.search(r":(\d+)\n", process.stdout)
        assert found is not None
        return process, Site(None, None, int(found[1]))  # type: ignore[arg-type]

    return start


@pytest.fixture
def quick_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that start from here on do not wait long for signs of life."""
    monkeypatch.setattr(serving, "PING", 0.2)
    monkeypatch.setattr(socket_connections, "LAST_WORD", 0.1)


def upgrade(path: str) -> bytes:
    """What asks for a socket."""
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "127.0.0.1", **UPGRADE}.items())
    return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()


@pytest.mark.req("WS-02", "STM-06")
async def test_a_server_that_stops_tells_its_sockets_which_go_on_elsewhere(start: Start) -> None:
    (first, here), (_, elsewhere) = await asyncio.gather(asyncio.to_thread(start), asyncio.to_thread(start))
    async with client(here, session_id="web-1") as ann:
        await ann.send("message", text="Count")
        before = await ann.until("token")
        path = f"/api/conversations/{ann.ready['conversation_id']}/events"
        async with here.connect() as wire:
            await wire.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n".encode())
            await wire.reply_without_body()
            chunks = wire.chunks()
            stream = await anext(chunks)

            first.send(signal.SIGTERM)

            code, reason = await closed(ann.socket)
            stream += b"".join([chunk async for chunk in chunks])  # it ends as a whole one does
        before += await ann.rest()
    async with client(elsewhere, session_id="web-1", since=before[-1]["cursor"]) as back:
        after = await back.until("done")

    assert (code, reason) == (1012, "the server stops; come back with your cursor")
    assert b"event: message" in stream
    assert [frame["text"] for frame in before + after if frame["kind"] == "answer"] == [
        "one two three four five six seven eight"
    ]
    assert kinds(before + after).count("done") == 1
    assert "one two three four five six seven eight".startswith(text_of(before))
    assert await asyncio.to_thread(first.wait) == 0
    assert "Traceback" not in first.stderr


@pytest.mark.req("WS-02")
@pytest.mark.parametrize("reads_again", [True, False])
async def test_who_does_not_read_is_closed_on_and_harms_nobody(
    desk: Site, model: Player, monkeypatch: pytest.MonkeyPatch, reads_again: bool
) -> None:
    monkeypatch.setattr(connections, "UNREAD", 0.5)
    monkeypatch.setattr(socket_connections, "LAST_WORD", 60 if reads_again else 0.1)
    loop = asyncio.get_running_loop()
    model.says(*[{"text": "a" * 900_000}] * 8)
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        await loop.sock_connect(deaf, ("127.0.0.1", desk.port))
        await loop.sock_sendall(deaf, upgrade("/ws/support?session_id=web-1"))
        assert b" 101 " in await loop.sock_recv(deaf, 1000)
        async with client(desk, session_id="web-1") as ann:
            for _ in range(8):
                await ann.send("message", text="Tell me a lot")

            said = [frame for _ in range(8) for frame in await ann.until("done")]

        assert kinds(said).count("answer") == 8
        async with asyncio.timeout(PATIENCE):
            while await open_sockets(desk):
                pass
            heard = b""
            while reads_again and not heard.endswith((1013).to_bytes(2) + b"nothing was read for too long"):
                heard = heard[-100:] + await loop.sock_recv(deaf, 100_000)
            while not reads_again and desk.port in peers_of(deaf):
                await loop.run_in_executor(None, time.sleep, 0.01)


async def open_sockets(site: Site) -> bool:
    """Whether the server has any."""
    reply = await site.ask("GET", "/metrics", key=site.file.token)
    return b"holdfast_sockets 0.0" not in reply.body


def peers_of(connection: socket.socket) -> list[int]:
    """The ports in this process that still hold the other end of a connection."""
    own = connection.getsockname()[1]
    found = psutil.Process().net_connections("tcp")
    return [each.laddr.port for each in found if each.raddr and each.raddr.port == own]


async def test_a_client_that_answers_no_ping_is_closed_on(quick_pings: None, desk: Site) -> None:
    async with desk.connect() as wire:
        await wire.send(upgrade("/ws/support"))
        assert (await wire.reply_without_body()).status == 101

        async with asyncio.timeout(PATIENCE):
            frames = await wire.rest()

    assert frames.endswith((1011).to_bytes(2) + b"no answer to a ping")


async def test_sockets_outlive_the_patience_for_requests(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE", 0.2)
    async with client(desk) as ann:
        await asyncio.sleep(0.6)
        await ann.send("message", text="Hello")

        assert kinds(await ann.until("done"))[-1] == "done"


@pytest.mark.parametrize("headers", [{f"X-{number}": "a" for number in range(200)}, {"Cookie": "a" * 10_000}])
async def test_headers_that_no_socket_can_have_are_refused_at_once(desk: Site, headers: dict[str, str]) -> None:
    async with desk.connect() as wire:
        reply = await wire.ask("GET", "/ws/support", headers={**UPGRADE, **headers})

        assert (reply.status, reply.code) == (400, "invalid_input")
        assert await wire.ended()


async def test_a_request_that_is_being_answered_cannot_become_a_socket(desk: Site) -> None:
    async with desk.connect() as wire:
        await wire.send(b"GET /slow?seconds=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await wire.send(upgrade("/ws/support"))

        assert (await wire.reply()).status == 400
        assert await wire.ended()
