"""Cleans up after a former server on a data folder: its process, its lock file, its children."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from holdfast.core.errors import Unavailable

STOP_TIMEOUT = 10.0  # for a server whose holder was killed; then an immediate shutdown, because a user waits
FOREIGN_TIMEOUT = 5.0  # for our server to begin its shutdown, after its holder was killed
ORPHAN_TIMEOUT = 1.0  # for the children of a killed server to end


def wait_for_predecessor(cluster: Path) -> int | None:
    """Wait until a former server on this folder has ended. Return the pid in its lock file if it is no such server."""
    began = time.monotonic()
    lock_file = cluster / "postmaster.pid"
    while True:
        try:
            content = lock_file.read_text()
            pid = abs(int(content.split("\n", 1)[0]))
        except OSError:
            return None
        except ValueError:
            content, pid = "", 0
        if pid == 0:  # empty after a crash: PostgreSQL would refuse to start
            lock_file.unlink()
            return None
        try:
            process = psutil.Process(pid)
            ended = process.status() == psutil.STATUS_ZOMBIE or "postgres" not in process.name()
            if ended or not cluster.samefile(process.cwd()):
                return pid
        except (psutil.AccessDenied, PermissionError):
            return pid  # a process of another account, so not our server
        except (OSError, psutil.NoSuchProcess):
            return None
        waited = time.monotonic() - began
        stopping = "stopping" in content
        if waited > (3 * STOP_TIMEOUT if stopping else FOREIGN_TIMEOUT):
            raise Unavailable(
                f"another PostgreSQL server (pid {pid}) uses {cluster}",
                why="it does not stop" if stopping else "it was not started by holdfast",
                next=f"Stop it with `kill -INT {pid}`, then try again.",
            )
        if stopping and waited > STOP_TIMEOUT:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)
            time.sleep(1)
        time.sleep(0.02)


def end_orphans(cluster: Path) -> None:
    """End the children of a server that was killed.

    They end by themselves, except one that waits for a lock of another killed process: it would wait forever.
    """
    processes = [process for process in psutil.process_iter(["name"]) if process.info["name"] == "postgres"]
    orphans = [process for process in processes if _is_orphan_on(process, cluster)]
    _, left = psutil.wait_procs(orphans, timeout=ORPHAN_TIMEOUT)
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=ORPHAN_TIMEOUT)


def _is_orphan_on(process: psutil.Process, cluster: Path) -> bool:
    # The title of a child, but not of the server itself, says what the process does.
    with suppress(psutil.Error, OSError):
        parent = process.parent()
        orphaned = parent is None or parent.name() != "postgres"
        title = "".join(process.cmdline()[:1])  # empty if it has just ended
        return orphaned and title.startswith("postgres:") and cluster.samefile(process.cwd())
    return False
