"""Binds the port, before anything else starts. If it is taken, the error names the process that listens on it."""

import errno
import ipaddress
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urlsplit

import psutil

from holdfast.core.config import Config
from holdfast.core.errors import BadSetting, PortTaken
from holdfast.server.server_file import ServerFile, ask_health

BACKLOG = 2048
COMMAND_SHOWN = 120  # characters of another process's command line


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address that the server listens on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_wildcard(self) -> bool:
        """Whether it listens on every address of the machine."""
        return ipaddress.ip_address(self.host).is_unspecified

    @property
    def url(self) -> str:
        """The URL of the server on this machine."""
        host = self.host
        if self.is_wildcard:
            host = "::1" if ":" in host else "127.0.0.1"
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def bind(config: Config) -> socket.socket:
    """Bind and listen on the port of the settings. Connections queue until the server accepts them."""
    host, port = config.server.host, config.server.port
    try:
        # A name can have several addresses. IPv4 sorts first, and every client tries it.
        found = sorted(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))
    except (OSError, UnicodeError) as error:
        raise _bad_host(config, getattr(error, "strerror", None) or str(error)) from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # two processes can bind one port, but only one can listen
    except OSError as error:
        listener.close()
        raise _bind_error(config, ServerAddress(str(address[0]), port), error) from error
    return listener


def address_of(listener: socket.socket) -> ServerAddress:
    """Return the address that a socket listens on."""
    host, port = listener.getsockname()[:2]
    return ServerAddress(host, port)


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is the loopback interface."""
    if host == "localhost":
        return True
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return (mapped or address).is_loopback
    return False


def _bind_error(config: Config, address: ServerAddress, error: OSError) -> BadSetting | PortTaken:
    port = address.port
    if error.errno == errno.EADDRINUSE:
        holder, pid = _holder(config, address)
        end = f", or stop process {pid}" if pid else ""
        return PortTaken(
            f"port {port} is taken",
            why=holder,
            next=f"Choose another with --port (0 picks a free one){end}.",
            port=port,
            pid=pid,
        )
    if error.errno == errno.EACCES:
        return BadSetting(
            f"port {port} cannot be used",
            why="this account may not listen on it",
            next="Choose one above 1023 with --port, and let a proxy serve the lower one.",
            key="server.port",
            origin=config.origin("server.port"),
        )
    return _bad_host(config, error.strerror or str(error))


def _bad_host(config: Config, why: str) -> BadSetting:
    return BadSetting(
        f"the server cannot listen on {config.server.host!a}",
        why=why,
        next="Give an address of this machine with --host: 127.0.0.1 for itself alone, 0.0.0.0 for everyone.",
        key="server.host",
        origin=config.origin("server.host"),
    )


def _holder(config: Config, address: ServerAddress) -> tuple[str, int | None]:
    """Describe the process that listens on the port. Return a sentence, and the pid if it is visible."""
    ours = ServerFile.read(config.data)
    if ours is not None and urlsplit(ours.url).port == address.port:
        since = ours.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
        return (
            f"holdfast {ours.version} listens on it since {since}, process {ours.pid}, data folder {ours.data}",
            ours.pid,
        )
    process = _listener_of(address.port)
    who = _describe(process) if process else "a process of another account listens on it"
    health = ask_health(address.url)
    if health is not None:
        who = who.replace("listens on it", f"listens on it, a holdfast {health.version}")
    return who, process.pid if process else None


def _listener_of(port: int) -> psutil.Process | None:
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            ports = connection.laddr[1:2]
            if connection.status == psutil.CONN_LISTEN and ports == (port,) and connection.pid:
                return psutil.Process(connection.pid)
    return None


def _describe(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        command = " ".join(process.cmdline()) or process.name()
        since = datetime.fromtimestamp(process.create_time(), UTC).astimezone().strftime("%Y-%m-%d %H:%M")
        short = command if len(command) <= COMMAND_SHOWN else f"{command[:COMMAND_SHOWN]}…"
        return f"process {process.pid} listens on it ({short}, since {since})"
    return f"process {process.pid} listens on it"
