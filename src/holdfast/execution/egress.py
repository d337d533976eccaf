"""Egress: outgoing connections to other servers, and the rules for which addresses may be reached.

An address that is not globally routable is refused unless it is allowed. It is checked when a socket is created for it:
after name resolution, however the name was written, for each attempt, and again for each redirect.
"""

import ipaddress
import re
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from yarl import URL

from holdfast.core.errors import BadSetting, Forbidden, InvalidInput, Unavailable
from holdfast.core.limits import LimitSettings
from holdfast.core.shares import Shares, current_holder, shared_by_tenant

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession
    from aiohttp.abc import AbstractResolver

PER_HOST = 32  # connections to one back end, so that a slow one does not take them all
KEEP_ALIVE = 4.0  # seconds: less than the 5 of common servers, so that they do not close a connection in use
CONNECT_SECONDS = 10.0  # for connecting and the TLS handshake
NAME_SECONDS = 10  # for which a resolved name is cached

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Python's own list differs between releases.
_NOT_GLOBAL_4 = tuple(
    map(
        ipaddress.IPv4Network,
        [
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT, and a metadata service
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's metadata service
            "169.254.0.0/16",  # link-local, and most metadata services
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ],
    )
)
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NOT_GLOBAL_6 = tuple(
    map(ipaddress.IPv6Network, ["2001::/23", "2001:db8::/32", "3fff::/20"])  # protocols, and documentation twice
)

# Metadata services hand out the machine's credentials. An allowed name does not open them; only their address does.
_METADATA: tuple[Network, ...] = tuple(
    map(ipaddress.ip_network, ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32"])
)
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")

_ENTRY = re.compile(
    r"\[(?P<bracketed>[^\]]+)\](?::(?P<port_6>\d{1,5}))?"
    r"|(?P<six>[0-9a-fA-F]*:[0-9a-fA-F.:]*:[0-9a-fA-F.:]*(?:/\d{1,3})?)"
    r"|(?P<host>[^\s:\[\]@]+)(?::(?P<port>\d{1,5}))?"
)
_NAME = re.compile(r"(?!-)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?")


def is_private(address: Address | str) -> bool:
    """Whether an address is not globally routable. An embedded IPv4 address decides for the address around it."""
    if isinstance(address, str):
        address = ipaddress.ip_address(address)
    if isinstance(address, ipaddress.IPv4Address):
        return any(address in network for network in _NOT_GLOBAL_4)
    if address.scope_id is not None:  # global addresses have no zone
        return True
    if address.ipv4_mapped is not None:
        return is_private(address.ipv4_mapped)
    if address in _NAT64:
        return is_private(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.sixtofour is not None:
        return is_private(address.sixtofour)
    if address.teredo is not None:
        return any(map(is_private, address.teredo))
    return address not in _GLOBAL_6 or any(address in network for network in _NOT_GLOBAL_6)


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Private addresses that may be reached, by name or by network; on one port, or on all (None)."""

    names: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[tuple[Network, int | None], ...] = ()

    @classmethod
    def parse(cls, entries: Sequence[str]) -> Self:
        """Parse entries like `wiki.lan`, `wiki.lan:8080`, `10.0.0.7`, `10.0.0.0/8:443`, `fd00::/8`, `[::1]:8080`."""
        names: set[tuple[str, int | None]] = set()
        networks: list[tuple[Network, int | None]] = []
        for entry in entries:
            place, port = _parse_entry(entry)
            try:
                networks.append((_network(place), port))
            except ValueError:
                name = _plain(place)
                if not _NAME.fullmatch(name) or re.fullmatch(r"[\d.]+|0[xX].*", place):
                    raise _invalid_entry(entry, "it is not a name, an address or a network") from None
                names.add((name, port))
        return cls(frozenset(names), tuple(networks))

    def permits(self, host: str, address: Address, port: int) -> bool:
        """Whether a private address may be reached for a host name."""
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        is_named = not self.names.isdisjoint({(_plain(host), port), (_plain(host), None)})
        if is_named and not any(address in network for network in _METADATA):
            return True
        return any(address in network and wanted in (None, port) for network, wanted in self.networks)


class Hop:
    """A request in progress to one host: how many sockets were created for it, and the addresses that were refused.

    `waits`: all connections are in use, and it has none yet. `places`: how to release those that it has.
    """

    __slots__ = ("host", "places", "refused", "sockets", "waits")

    def __init__(self, host: str) -> None:
        self.host = host
        self.waits = False
        self.sockets = 0
        self.refused: list[str] = []
        self.places: list[Callable[[], None]] = []

    def leave(self) -> None:
        """Release its place among the connections."""
        while self.places:
            self.places.pop()()

    def refusal(self) -> Forbidden:
        """Return the error for the refused addresses."""
        where = ", ".join(dict.fromkeys(self.refused))
        return Forbidden(
            f"{self.host} was not called",
            why=f"its address {where} is not public" if where != self.host else "this address is not public",
            next="Ask an operator to allow it in execution.allow_private.",
        )


_current_hop: ContextVar[Hop] = ContextVar("holdfast_hop")


def leave_connection() -> None:
    """Let others have the place of this task's connection, which waits for somebody and not for its back end.

    The caller limits how many wait so.
    """
    hop = _current_hop.get(None)
    if hop is not None:
        hop.leave()


class RefusedAddress(OSError):
    """The socket for a private address was refused."""


class Egress:
    """The connections to back ends. The session opens on first use, and closes on exit.

    The session keeps no cookies, sends each request once, does not decompress, and uses no proxy.
    """

    def __init__(
        self,
        allowed: AllowedHosts | None = None,
        *,
        connections: int = 100,
        resolver: "AbstractResolver | None" = None,
        limits: LimitSettings | None = None,
    ) -> None:
        self._allowed = allowed or AllowedHosts()
        self._resolver = resolver
        self._session: ClientSession | None = None
        self._closed = False
        self._limits = limits or LimitSettings()
        self._all_shares = self._make_shares("connections to back ends", connections)
        self._host_shares: WeakValueDictionary[str, Shares] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def reserve_connection(self, hop: Hop, *, counted: bool = True) -> AsyncGenerator[None]:
        """Wait for a free connection for a hop. Sockets that are created inside the block belong to the hop.

        Without `counted`, it takes no place: for streams that stay open, of which the caller limits the number.
        """
        if not counted:
            with self._sockets_of(hop):
                yield
            return
        host_shares = self._host_shares.get(hop.host)
        if host_shares is None:
            host_shares = self._host_shares[hop.host] = self._make_shares("connections to one back end", PER_HOST)
        holder = current_holder()
        hop.waits = True
        try:
            for shares in (host_shares, self._all_shares):
                await shares.wait(holder)
                hop.places.append(partial(shares.release, holder))
            hop.waits = False
            with self._sockets_of(hop):
                yield
        finally:
            hop.leave()

    @contextmanager
    def _sockets_of(self, hop: Hop) -> Generator[None]:
        token = _current_hop.set(hop)
        try:
            yield
        finally:
            _current_hop.reset(token)

    def _make_shares(self, what: str, total: int) -> Shares:
        return shared_by_tenant(self._limits, what, total, setting="execution.connections")

    def session(self) -> "ClientSession":
        """Return the session that all requests share.

        Make each request inside `reserve_connection`, with a hop to its host.
        """
        if self._closed:
            raise Unavailable("back ends can no longer be called", why="the engine is closed")
        if self._session is None:
            self._session = self._open()
        return self._session

    def _open(self) -> "ClientSession":
        import aiohttp

        from holdfast.execution.resolver import Resolver

        async def without_retry(request: "ClientRequest", handler: "ClientHandlerType") -> "ClientResponse":
            """Keep aiohttp from retrying by itself when a kept-alive connection turns out to be closed."""
            try:
                return await handler(request)
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
                raise aiohttp.ClientConnectionError(str(error) or "the connection was closed") from error

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # `reserve_connection` limits them
                keepalive_timeout=KEEP_ALIVE,
                ttl_dns_cache=NAME_SECONDS,
                resolver=self._resolver or Resolver(),
                socket_factory=self._socket,
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=(without_retry,),
            auto_decompress=False,
            trust_env=False,
        )

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Create a socket for an address, if it may be reached. This is the last step before the connection."""
        family, kind, protocol, _, place = info
        hop = _current_hop.get(None) or Hop("")
        address = _address(family, place)
        if address is None or (is_private(address) and not self._allowed.permits(hop.host, address, place[1])):
            hop.refused.append(str(place[0]))
            raise RefusedAddress(f"{place[0]} is not public")
        hop.sockets += 1
        return socket.socket(family, kind, protocol)


def checked_url(text: str) -> URL:
    """Check that a URL may be called, as far as its text shows: http or https, a host, no user and no password."""
    try:
        url = URL(text)
        port = url.port
    except ValueError as error:
        raise InvalidInput(f"{text[:200]!r} is not a valid URL", why=str(error)) from None
    if url.scheme not in ("http", "https"):
        raise InvalidInput(f"{text[:200]!r} cannot be called", why="only http and https are supported")
    if url.user is not None or url.password is not None:
        raise InvalidInput("a URL with a user or a password cannot be called", next="Use a secret.")
    if not url.raw_host or not port or re.search(r"[\s\\<>\"^`{|}\x00-\x1f\x7f]", url.raw_host):
        raise InvalidInput(f"{text[:200]!r} is not a valid URL", why="it has no valid host")
    return url


def _address(family: int, place: Sequence[Any]) -> Address | None:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        return ipaddress.ip_address(place[0])
    except ValueError:
        return None


def _parse_entry(entry: str) -> tuple[str, int | None]:
    found = _ENTRY.fullmatch(entry.strip())
    if found is None:
        raise _invalid_entry(entry, "it is not a name, an address or a network")
    port = found["port_6"] or found["port"]
    if port is not None and not 0 < int(port) < 65536:
        raise _invalid_entry(entry, "its port is out of range")
    if found["six"] and _ends_like_a_port(found["six"]):
        raise _invalid_entry(entry, "its last part may be a port")
    return found["bracketed"] or found["six"] or found["host"], int(port) if port else None


def _ends_like_a_port(address: str) -> bool:
    """Whether an address without brackets could also be another address with a port, like `fd00::1:443`."""
    before, _, last = address.rpartition(":")
    try:
        return re.fullmatch(r"[1-9]\d{1,4}", last) is not None and bool(ipaddress.IPv6Address(before))
    except ValueError:
        return False


def _network(place: str) -> Network:
    network = ipaddress.ip_network(place)
    if not isinstance(network, ipaddress.IPv6Network) or not network.subnet_of(_MAPPED):
        return network
    return ipaddress.IPv4Network((int(network.network_address) & 0xFFFF_FFFF, network.prefixlen - 96))


def _invalid_entry(entry: str, why: str) -> BadSetting:
    next = "Write it like wiki.lan:8080, 10.0.0.7, 10.0.0.0/8 or [::1]:8080."
    return BadSetting(f"the entry {entry[:100]!r} of execution.allow_private is invalid", why=why, next=next)


def _plain(host: str) -> str:
    """Normalize a host name for comparison: lower case, and in the ASCII form of DNS."""
    host = host.rstrip(".").lower()
    if host.isascii():
        return host
    try:
        return URL.build(scheme="http", host=host).raw_host or ""
    except ValueError:
        return ""
