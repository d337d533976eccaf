"""`holdfast up`, as whoever starts and stops it sees it."""

import http.client
import json
import random
import signal
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from holdfast.postgres.folder import DataFolder
from tests.acceptance.folders import first_number
from tests.processes import Process, Processes, servers_on, wait_until_gone

READY = "Holdfast is ready."

pytestmark = [pytest.mark.acceptance, pytest.mark.req("ENG-01", "ENG-02", "UI-02")]


def up(processes: Processes, data: Path, *options: str, port: int = 0) -> Process:
    """Start the engine on a data folder."""
    return processes.holdfast("up", "--data", str(data), "--port", str(port), *options)


def address(data: Path) -> str:
    """Where the engine says that it is."""
    return json.loads(DataFolder(data).server_file.read_text())["url"]


def ask(url: str, path: str) -> tuple[int, bytes]:
    """Ask the engine for a page; its status and content."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(come: Callable[[], bool]) -> None:
    """Wait for what must come to pass."""
    deadline = time.monotonic() + 30
    while not come():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_says_where_it_is_and_answers_there(empty: Path, processes: Processes) -> None:
    engine = up(processes, empty)
    engine.wait_for("Ctrl-C stops it.")

    status, content = ask(address(empty), "/readyz")

    assert status == 200
    assert b"database" in content
    assert READY in engine.stderr
    assert address(empty) in engine.stderr
    assert str(empty) in engine.stderr
    assert engine.stdout == ""


def test_programs_read_one_line_when_it_is_ready(used: Path, processes: Processes) -> None:
    engine = up(processes, used, "--json")
    engine.wait_for('"url"')

    (line,) = engine.stdout.splitlines()

    ready = json.loads(line)
    assert ready["pid"] == engine.pid
    assert ready["data"] == str(used)
    assert ask(ready["url"], "/healthz")[0] == 200


@pytest.mark.parametrize("farewell", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_nothing_is_left(used: Path, processes: Processes, farewell: signal.Signals) -> None:
    engine = up(processes, used)
    engine.wait_for(READY)

    engine.send(farewell)

    assert engine.wait() == 0
    assert "Traceback" not in engine.stderr
    assert engine.stdout == ""
    wait_until_gone(*servers_on(used))
    assert not DataFolder(used).server_file.exists()
    assert not (used / "postgres" / "postmaster.pid").exists()
    assert not list(DataFolder(used).sockets.iterdir())


def test_a_second_interrupt_ends_it_at_once_while_a_request_hangs(used: Path, processes: Processes) -> None:
    engine = up(processes, used)
    engine.wait_for(READY)
    place = urlsplit(address(used))
    with socket.create_connection((place.hostname, place.port)) as slow:
        slow.sendall(b"POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        slow.sendall(b"Content-Length: 100\r\n\r\n{")
        ask(address(used), "/healthz")  # the one above was read before this one

        engine.send(signal.SIGINT)
        with pytest.raises(AssertionError):
            wait_until_gone(engine.pid, timeout=1)
        engine.send(signal.SIGINT)

        assert engine.wait(timeout=15) == 0  # which is less than a request is waited for
    assert "Traceback" not in engine.stderr
    wait_until_gone(*servers_on(used))


@pytest.mark.parametrize("moment", range(3))
def test_an_interrupt_while_it_starts_ends_it_and_nothing_is_left(
    empty: Path, processes: Processes, moment: int
) -> None:
    engine = up(processes, empty)
    wait_until(DataFolder(empty).users_lock.exists)
    delay = random.uniform(0.3 * moment, 0.3 * (moment + 1))
    time.sleep(delay)

    engine.send(signal.SIGINT)

    assert engine.wait() in (0, 130), f"after {delay:.3f} s: {engine.stderr}"
    assert "Traceback" not in engine.stderr, f"after {delay:.3f} s: {engine.stderr}"
    wait_until_gone(*servers_on(empty))


def test_killed_it_leaves_no_process_and_the_next_one_starts(used: Path, processes: Processes) -> None:
    first = up(processes, used)
    first.wait_for(READY)
    running = servers_on(used)

    first.kill()

    wait_until_gone(*running)
    second = up(processes, used)
    second.wait_for(READY)
    assert ask(address(used), "/readyz")[0] == 200


def test_only_its_owner_can_read_how_to_reach_it(used: Path, processes: Processes) -> None:
    engine = up(processes, used)
    engine.wait_for(READY)

    status = DataFolder(used).server_file.stat()

    assert stat.S_IMODE(status.st_mode) == 0o600
    assert json.loads(DataFolder(used).server_file.read_text())["pid"] == engine.pid


def test_of_two_on_one_port_the_second_says_who_has_it_and_the_first_goes_on(empty: Path, processes: Processes) -> None:
    port = free_port()
    both = [up(processes, empty, port=port) for _ in range(2)]
    wait_until(lambda: any("is taken" in engine.stderr for engine in both))
    refused, served = sorted(both, key=lambda engine: "is taken" not in engine.stderr)

    served.wait_for(READY)

    assert refused.wait() == 6
    assert f"port {port} is taken" in refused.stderr
    assert str(served.pid) in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert ask(f"http://127.0.0.1:{port}", "/readyz")[0] == 200
    assert DataFolder(empty).log.read_text().count("starting PostgreSQL") == 1


def test_two_on_two_ports_share_one_server(used: Path, processes: Processes) -> None:
    first = up(processes, used)
    first.wait_for(READY)
    server = first_number(used / "postgres" / "postmaster.pid")
    second = up(processes, used, "--json")
    second.wait_for('"url"')
    url = json.loads(second.stdout)["url"]

    first.send(signal.SIGINT)
    first.wait()

    assert ask(url, "/readyz")[0] == 200
    assert first_number(used / "postgres" / "postmaster.pid") == server


def test_it_recovers_by_itself_when_the_server_is_killed(used: Path, processes: Processes) -> None:
    engine = up(processes, used)
    engine.wait_for(READY)
    url = address(used)

    killed = psutil.Process(first_number(used / "postgres" / "postmaster.pid"))
    killed.kill()
    wait_until_gone(killed.pid)

    wait_until(lambda: ask(url, "/readyz")[0] == 200)
    assert "Traceback" not in engine.stderr
