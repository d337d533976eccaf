"""A PostgreSQL as a hosting company gives it: over TCP, by password, without superuser."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.postgres.account import open_for_child, runnable_binaries, server_account
from holdfast.postgres.binaries import Binaries, find_binaries

OWNER = "company"


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A running server of someone else's."""

    port: int
    password: str

    def make_database(self, name: str) -> str:
        """The address of an empty database whose owner may make roles and no more."""
        _sql(self._address("admin", "postgres"), f"create database {name} owner {OWNER}")
        _sql(self._address("admin", name), "create extension vector")
        return self._address(OWNER, name)

    def make_owner(self) -> None:
        """The login that the company gives to its customer."""
        attributes = f"login createrole nosuperuser nobypassrls password '{self.password}'"
        _sql(self._address("admin", "postgres"), f"create role {OWNER} {attributes}")

    def _address(self, user: str, database: str) -> str:
        return f"postgresql://{user}:{self.password}@127.0.0.1:{self.port}/{database}"


@contextmanager
def remote_server(folder: Path, binaries: Binaries | None = None) -> Generator[RemoteServer]:
    """Start one in `folder`, of the version that `binaries` has."""
    cluster = folder / "remote"
    account = server_account(cluster)
    binaries = runnable_binaries(binaries or find_binaries(), account)
    cluster.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(cluster, account.uid, account.gid)
    remote = RemoteServer(free_port(), secrets.token_hex(8))
    settings = {"port": remote.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with open_for_child(cluster) as (place, descriptors), tempfile.NamedTemporaryFile("w") as secret:
        Path(secret.name).chmod(0o644)
        secret.write(remote.password)
        secret.flush()
        identity: dict[str, Any] = {"cwd": "/", "pass_fds": descriptors, **account.identity()}
        initdb = [binaries.path("initdb"), "-D", place, "--username=admin", "--auth=scram-sha-256", "--locale=C"]
        quiet = [f"--pwfile={secret.name}", "--no-sync", "--encoding=UTF8"]
        subprocess.run([*initdb, *quiet], check=True, stdout=subprocess.DEVNULL, **identity)
        postgres = [binaries.path("postgres"), "-D", place, *options]
        server = subprocess.Popen(postgres, stderr=subprocess.DEVNULL, **identity)
        try:
            remote.make_owner()
            yield remote
        finally:
            server.terminate()
            server.wait(30)
    shutil.rmtree(cluster, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _sql(url: str, *statements: str) -> None:
    commands = [part for statement in statements for part in ("-c", statement)]
    psql = [find_binaries().path("psql"), "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "-d", url]
    deadline = time.monotonic() + 30
    while subprocess.run([*psql, "-c", "select 1"], capture_output=True).returncode != 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    subprocess.run([*psql, *commands], check=True)
