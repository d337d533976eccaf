"""The README's commands, run as a newcomer would: in a fresh clone, in a fresh virtual environment."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVERS = frozenset({"make run", "holdfast up"})
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = re.findall(
    r"^\$ (.+)$",
    "\n".join(re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)),
    re.MULTILINE,
)

pytestmark = [pytest.mark.acceptance, pytest.mark.req("ENG-01")]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone of what is committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("there is no repository to clone")
    target = tmp_path / "holdfast"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(target)], check=True)
    return target


@pytest.fixture
def newcomer(tmp_path: Path) -> dict[str, str]:
    """The environment of someone who has just arrived, with an empty virtual environment of their own."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    ours = re.compile(r"HOLDFAST_|PYTEST|PYTHON|VIRTUAL_ENV|MAKE|MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return kept | {
        "PATH": os.pathsep.join([str(tmp_path / "venv" / "bin"), kept["PATH"]]),
        "HOLDFAST_DATA": str(tmp_path / "data"),
        "PIP_NO_COMPILE": "1",  # Python compiles what is used; all of it takes a minute
    }


@pytest.fixture
def packages(tmp_path: Path, newcomer: Mapping[str, str]) -> None:
    """Packages can be installed here; if not, there is nothing to test."""
    probe = ["pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--retries=0", "--timeout=10", "iniconfig"]
    if subprocess.run(probe, cwd=tmp_path, env=newcomer, capture_output=True).returncode == 0:
        return
    if os.environ.get("CI") == "true":
        pytest.fail("no packages can be had here: the README's commands were not tried")
    pytest.skip("no packages can be had here")


@pytest.mark.usefixtures("packages")
def test_every_command_of_the_readme_works(clone: Path, newcomer: Mapping[str, str]) -> None:
    assert {"make run", "make test", "pip install .", "holdfast up"} <= set(COMMANDS)

    for command in COMMANDS:
        if command in SERVERS:
            serve(command, clone, newcomer)
        elif command == "make test":
            run('make --old-file=check test ARGS="--collect-only tests/core"', clone, newcomer)
        else:
            run(command, clone, newcomer)


@pytest.mark.req("CONV-05")
def test_the_example_of_the_readme_runs(fast_folder: Path, tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    environ = {**os.environ, "HOLDFAST_DATA": str(fast_folder / "readme")}

    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "track gave: Parcel AB-123 is in Cologne.",
        "Ann prefers to be called in the morning",
    ]


def run(command: str, clone: Path, environ: Mapping[str, str]) -> None:
    """Run a command to its end."""
    done = subprocess.run(shlex.split(command), cwd=clone, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def serve(command: str, clone: Path, environ: Mapping[str, str]) -> None:
    """Start a server, wait until it is ready, and stop it as Ctrl-C does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    option = f"--port {port}"
    words = [*shlex.split(command), *([f"ARGS={option}"] if command.startswith("make") else option.split())]

    said = clone.with_suffix(".log")
    with said.open("w") as log:
        server = subprocess.Popen(words, cwd=clone, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        ready = wait_until_ready(f"http://127.0.0.1:{port}/readyz", server, seconds=600)
        assert ready, f"{command} did not get ready\n{said.read_text()}"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as page:
            assert b"/static/console/assets/" in page.read(), "the console was not built"
        os.killpg(server.pid, signal.SIGINT)
        ended = server.wait(timeout=60)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
    # make reports that its child was interrupted; the engine itself ends with 0.
    assert command.startswith("make") or ended == 0, said.read_text()
    assert "Traceback" not in said.read_text()


def wait_until_ready(address: str, server: subprocess.Popen[bytes], *, seconds: float) -> bool:
    """Whether the server answers that it is ready before it ends or the time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False
