"""The holder: the process that owns the embedded server.

It starts PostgreSQL as its child, restarts it if it is killed, and stops it when no process holds the users' lock. If
the holder itself is killed, the kernel sends the server a signal to stop (Linux), and the next user starts a new
holder.
"""

import ctypes
import fcntl
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.core.errors import Broken, HoldfastError, Unavailable
from holdfast.postgres.account import clean_environment, open_for_child, runnable_binaries, server_account
from holdfast.postgres.binaries import find_binaries
from holdfast.postgres.embedded import DATABASE, OWNER, is_responding
from holdfast.postgres.folder import SOCKET_NAME, DataFolder
from holdfast.postgres.former_server import end_orphans, wait_for_predecessor
from holdfast.postgres.memory_settings import machine_memory, settings_for

LINUX = sys.platform == "linux"
PR_SET_PDEATHSIG = 1
READY_TIMEOUT = 290.0
STOP_TIMEOUT = 60.0  # then an immediate shutdown: acknowledged writes are in the WAL, which the next start replays
DRAFT_TIMEOUT = 5.0
LOG_LIMIT = 16 * 1024 * 1024
LIBC = ctypes.CDLL(None) if LINUX else None


class Holder:
    """Keeps a server running while any process uses it."""

    def __init__(self, folder: DataFolder, memory: int) -> None:
        self._folder = folder
        self._memory = memory
        self._account = server_account(folder.cluster)
        self._binaries = runnable_binaries(find_binaries(), self._account)
        self._process: subprocess.Popen[Any] | None = None
        self._stopping = threading.Event()

    def start(self) -> None:
        """Create the cluster if there is none, and start the server."""
        for abandoned in self._folder.root.glob("postgres.new*"):
            remove(abandoned)
        if not (self._folder.cluster / "PG_VERSION").exists():
            self._initialise()
        self._write_access_rules()
        self._launch()

    def watch(self) -> None:
        """Restart the server if it dies. When no process uses it any more, stop it and return."""
        threading.Thread(target=self._wait_until_unused, daemon=True).start()
        while True:
            assert self._process is not None
            self._process.wait()
            if self._stopping.is_set() or not (self._folder.cluster / "PG_VERSION").exists():
                return
            sys.stderr.write(f"holder: PostgreSQL ended with {self._process.returncode}; restarting it\n")
            self._launch()
            if self._stopping.is_set():
                self.stop()

    def stop(self) -> None:
        """Stop the server with a fast shutdown: running statements are aborted, acknowledged writes are on disk."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            # PostgreSQL 18 never ends if it is stopped like this while it restarts after a crash.
            kill_timer = threading.Timer(STOP_TIMEOUT, self._process.send_signal, [signal.SIGQUIT])
            kill_timer.daemon = True
            kill_timer.start()

    def _wait_until_unused(self) -> None:
        with self._folder.users_lock.open("ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            self.stop()
            # New users wait for their shared lock until the server is down, then start a new one.
            threading.Event().wait()

    def _initialise(self) -> None:
        # A unique name: the initdb of a killed holder may still be writing into the previous draft.
        draft = self._folder.root / f"postgres.new.{os.getpid()}"
        draft.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(draft, self._account.uid, self._account.gid)
        # The wheels have no ICU. The order of the built-in locale never changes, so indexes stay valid.
        locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        self._run(draft, ["initdb", f"--username={OWNER}", "--auth=peer", *locale, "--data-checksums", "-D"])
        self._run(draft, ["postgres", "--single", "-D"], ["postgres"], f"create database {DATABASE}\n")
        draft.rename(self._folder.cluster)

    def _run(self, cluster: Path, before: list[str], after: list[str] | None = None, stdin: str = "") -> None:
        with open_for_child(cluster) as (place, descriptors):
            result = subprocess.run(
                [self._binaries.path(before[0]), *before[1:], place, *(after or [])],
                input=stdin,
                capture_output=True,
                text=True,
                cwd="/",
                env=self._environment(),
                pass_fds=descriptors,
                preexec_fn=partial(die_with, os.getpid(), signal.SIGKILL),
                **self._account.identity(),
            )
        if result.returncode != 0:
            raise Unavailable(
                "PostgreSQL could not initialize a new data folder",
                why=(result.stderr or result.stdout).strip()[-2000:],
                next=f"Check that {self._folder.root} is writable and has free space, then try again.",
            )

    def _write_access_rules(self) -> None:
        """Write the authentication rules: passwords for tenants' logins, the caller's account for all other roles."""
        rules = "local all +holdfast_tenant scram-sha-256\nlocal all all peer map=holdfast\n"
        accounts = {self._account.name, pwd.getpwuid(os.geteuid()).pw_name, "root"}
        names = "".join(f'holdfast "{account}" all\n' for account in sorted(accounts))
        for name, text in (("pg_hba.conf", rules), ("pg_ident.conf", names)):
            self._account.write(self._folder.cluster / name, text)

    def _launch(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        while True:
            environment = self._environment()
            impostor = wait_for_predecessor(self._folder.cluster)
            if impostor is not None:
                # This variable tells PostgreSQL that the process with this pid is not a server.
                environment["PG_GRANDPARENT_PID"] = str(impostor)
            for leftover in (SOCKET_NAME, SOCKET_NAME + ".lock"):
                (self._folder.sockets / leftover).unlink(missing_ok=True)
            log_start = self._folder.log.stat().st_size
            self._process = self._spawn(environment)
            while self._process.poll() is None and time.monotonic() < deadline:
                if is_responding(self._folder.sockets):
                    return
                time.sleep(0.01)
            output = self._folder.log.read_bytes()[log_start:].decode(errors="replace")
            in_use = "is still in use" in output  # shared memory that children of a killed server still use
            # The server itself was killed, or the process in it that recovers from an earlier crash.
            killed = (self._process.poll() or 0) < 0 or "was terminated by signal 9" in output
            if (in_use or killed) and not self._stopping.is_set() and time.monotonic() < deadline:
                end_orphans(self._folder.cluster)
                continue
            self.stop()
            raise Unavailable(
                "the embedded PostgreSQL does not start",
                why=output.strip()[-1500:],
                next=f"Look for the cause in {self._folder.log}, then try again.",
            )

    def _spawn(self, environment: dict[str, str]) -> subprocess.Popen[Any]:
        settings = {
            "listen_addresses": "",
            "fsync": "on",
            "jit": "off",
            "max_wal_size": "4GB",
            "max_connections": "200",
            "reserved_connections": "50",  # for the engine, however many tenants' logins take
            "deadlock_timeout": "100ms",  # the default is a second; the loser retries
            "log_min_messages": "warning",
            **settings_for(self._memory),
        }
        with open_for_child(self._folder.cluster, self._folder.sockets) as (cluster, sockets, descriptors):
            settings["unix_socket_directories"] = '"' + sockets.replace('"', '""') + '"'
            options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
            if os.geteuid() == 0:
                os.chown(self._folder.sockets, self._account.uid, self._account.gid)
            return subprocess.Popen(
                [self._binaries.path("postgres"), "-D", cluster, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env=environment,
                pass_fds=descriptors,
                process_group=0,
                preexec_fn=partial(die_with, os.getpid(), signal.SIGQUIT),  # noqa: PLW1509 - it runs after the change of account
                **self._account.identity(),
            )

    def _environment(self) -> dict[str, str]:
        return {**clean_environment(), "LC_ALL": "C"}


def remove(folder: Path) -> None:
    """Remove a draft folder. A child of a killed `initdb` may still be writing into it for a moment."""
    deadline = time.monotonic() + DRAFT_TIMEOUT
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.01)


def die_with(parent: int, death_signal: signal.Signals) -> None:
    """Ask the kernel for a signal when the holder dies. Runs in the child, after the change of account.

    A server gets the signal for an immediate shutdown, like a crash: a fast shutdown during the recovery from another
    crash never ends (PostgreSQL 18).
    """
    if LIBC is None:
        return
    LIBC.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:  # the holder died before the signal was set up
        os._exit(1)


def main() -> None:
    """Detach from the caller, start the server, report on standard output, and run while the server is used."""
    if os.fork():
        os._exit(0)
    try:
        run_holder(DataFolder(Path(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else machine_memory())
    except HoldfastError as error:
        sys.stderr.write(f"holder: {error}\n")
        report({"code": error.code, "what": error.what, "why": error.why, "next": error.next})
    except Exception as error:
        what = "the holder of the embedded PostgreSQL failed"
        report({"code": Broken.code, "what": what, "why": repr(error), "next": ""})
        raise


def run_holder(folder: DataFolder, memory: int) -> None:
    """Run a server on the folder, unless another holder does."""
    with folder.holder_lock.open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report({"running": False})
            return
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n".encode())
        lock.flush()
        if folder.log.stat().st_size > LOG_LIMIT:
            os.truncate(folder.log, 0)
        folder.prepare()  # the last holder may have removed the socket folder after the user's check
        holder = Holder(folder, memory)
        signal.signal(signal.SIGTERM, lambda _number, _frame: holder.stop())
        holder.start()
        report({"running": True})
        holder.watch()
        if folder.sockets.parent != folder.root:
            with suppress(OSError):
                folder.sockets.rmdir()


def report(message: dict[str, object]) -> None:
    """Send one line to the process that started this one, if it is alive, and close standard output."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


if __name__ == "__main__":
    main()
