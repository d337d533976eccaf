"""What a former server left on a data folder."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from holdfast.postgres.embedded import EmbeddedServer, is_responding
from holdfast.postgres.former_server import end_orphans

pytestmark = pytest.mark.req("ENG-02")


class EndedProcess:
    """A process between its end and its disappearance: it has no command line any more."""

    def __init__(self) -> None:
        self.info = {"name": "postgres"}

    def parent(self) -> None: ...

    def cmdline(self) -> list[str]:
        return []


def test_a_process_that_has_just_ended_is_no_orphan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waited: list[object] = []

    def processes(_: Sequence[str]) -> list[EndedProcess]:
        return [EndedProcess()]

    def wait(orphans: Sequence[object], timeout: float) -> tuple[list[object], list[object]]:
        waited.extend(orphans)
        return [], []

    monkeypatch.setattr(psutil, "process_iter", processes)
    monkeypatch.setattr(psutil, "wait_procs", wait)

    end_orphans(tmp_path)

    assert waited == []


@pytest.mark.req("SAFE-01")
def test_a_recovery_that_is_killed_is_begun_again(fast_folder: Path) -> None:
    data = fast_folder / "killed-recovery"
    killed = False
    for _ in range(10):  # a recovery takes some milliseconds, and may be over before it is seen
        with EmbeddedServer(data, memory=2**27) as server:
            postmaster = psutil.Process(int((server.folder.cluster / "postmaster.pid").read_text().split()[0]))
            holder = postmaster.parent()
            assert holder is not None
            everything = [holder, postmaster, *postmaster.children()]
            for process in everything:
                with suppress(psutil.NoSuchProcess):  # ended with those before it
                    process.kill()
            psutil.wait_procs(everything, timeout=10)
            starter = threading.Thread(target=server.ensure)
            starter.start()
            while starter.is_alive() and not killed:
                killed = _kill_recovery(server.folder.cluster)
            starter.join()
            assert is_responding(server.folder.sockets)
        if killed:
            break

    assert killed, "no recovery was seen"
    assert "was terminated by signal 9" in (data / "postgres.log").read_text()


def _kill_recovery(cluster: Path) -> bool:
    """Kill the recovery of a server that starts, if it is under way."""
    with suppress(OSError, ValueError, IndexError, psutil.Error):
        server = psutil.Process(int((cluster / "postmaster.pid").read_text().split()[0]))
        for child in server.children():
            if "startup" in "".join(child.cmdline()):
                child.kill()
                return True
    return False
