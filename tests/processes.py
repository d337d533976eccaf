"""Real processes for crash tests."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.zygote import Fork, zygote


class Process:
    """One running program; what it says is kept."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._popen = _started(arguments, environment, cwd)
        self.pid = self._popen.pid
        self._said: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._news = threading.Condition()
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._said]
        for reader in self._readers:
            reader.start()

    @property
    def stdout(self) -> str:
        """What it wrote to standard output so far."""
        return "".join(self._said["stdout"])

    @property
    def stderr(self) -> str:
        """What it wrote to standard error so far."""
        return "".join(self._said["stderr"])

    def wait_for(self, text: str, *, timeout: float = 60) -> None:
        """Wait until it has said `text`, on either stream."""
        with self._news:
            found = self._news.wait_for(lambda: text in self.stdout + self.stderr or not self._alive(), timeout)
        assert found, f"{text!r} was not said in {timeout} s; stdout: {self.stdout}; stderr: {self.stderr}"
        assert text in self.stdout + self.stderr, (
            f"ended without {text!r}; stdout: {self.stdout}; stderr: {self.stderr}"
        )

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def kill(self) -> None:
        """Kill it without a chance to say goodbye."""
        self._popen.kill()
        self.wait()

    def wait(self, *, timeout: float = 60) -> int:
        """Its exit code, when it has ended."""
        code = self._popen.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
        return code

    def end(self) -> None:
        """End it if it still runs, and close its pipes."""
        if self._popen.poll() is None:
            self._popen.kill()
        self.wait()
        for stream in (self._popen.stdout, self._popen.stderr):
            assert stream is not None
            stream.close()

    def _alive(self) -> bool:
        return any(reader.is_alive() for reader in self._readers)

    def _read(self, name: str) -> None:
        for line in getattr(self._popen, name):
            with self._news:
                self._said[name].append(line.decode(errors="replace"))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()


class Processes:
    """Starts programs of ours, and ends what is left of them."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._started: list[Process] = []

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start a program with this Python; the environment is the machine's without any HOLDFAST_ setting."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PGVECTOR_"))
        }
        process = Process([sys.executable, *arguments], {**inherited, **(environment or {})}, self._cwd)
        self._started.append(process)
        return process

    def holdfast(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start the command line."""
        return self.start("-m", "holdfast.cli.main", *arguments, environment=environment)

    def end_all(self) -> None:
        """End what still runs."""
        for process in self._started:
            process.end()


def _started(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes] | Fork:
    """A program of ours is forked where that makes no difference: most of its time would be its imports."""
    if arguments[0] == sys.executable and zygote().suits(arguments[1:], environment):
        return zygote().start(arguments[1:], environment, cwd)
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(environment),
    )


def wait_until_gone(*pids: int, timeout: float = 30) -> None:
    """Wait until none of these processes is left, zombies aside."""
    deadline = time.monotonic() + timeout
    while left := [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() < deadline, f"still running after {timeout} s: {left}"
        time.sleep(0.02)


def servers_on(data: Path) -> list[int]:
    """The pids of all PostgreSQL processes and holders that work on a data folder."""
    found: list[int] = []
    for process in psutil.process_iter(["pid", "name", "cmdline"]):
        try:
            command: list[str] = process.info["cmdline"] or []
            holder = "holdfast.postgres.holder" in command and str(data) in command
            if holder or (process.info["name"] == "postgres" and Path(process.cwd()) == data / "postgres"):
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
