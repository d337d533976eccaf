"""Checks of the Host and Origin headers, against attacks by web pages.

A malicious web page can make a browser send requests to this server: under its own host name, which it points to this
machine (DNS rebinding), or across sites. The Host header reveals the first attack, the Origin header the second. Other
programs than browsers can send any headers, but must authenticate.
"""

import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress

from starlette.datastructures import Headers

from holdfast.core.errors import Forbidden, InvalidInput
from holdfast.server.port import ServerAddress, is_loopback

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PROXY_HEADERS = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"})
DEFAULT_PORTS = {"http": "80", "https": "443"}

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>\d{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[^/@?#]+)")


class HostOriginPolicy:
    """The host names and origins that one server accepts."""

    def __init__(self, address: ServerAddress, *, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self._address = address
        self._hosts = frozenset(host.lower().rstrip(".") for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for another host.

        The status is 403, because 421 would invite the client to retry on another connection.
        """
        name, port = _host(headers)
        if not self._is_ours(name, port):
            raise Forbidden(
                f"this server does not answer to the name {name!r}",
                why="a web page could otherwise reach it under a name of its own",
                next="Use 127.0.0.1, or add the name to server.allowed_hosts.",
                host=name,
            )

    def check_origin(self, method: str, scheme: str, headers: Headers) -> None:
        """Refuse a cross-site request of a browser."""
        given = headers.getlist("origin")
        if not given:
            # Browsers omit the origin only of plain reads, and do not show the response to the page.
            if method in SAFE_METHODS or headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
                return
            given = ["null"]
        origin = given[0].lower()
        if len(given) > 1 or not (origin in self._origins or _same_origin(origin, scheme, headers)):
            raise Forbidden(
                f"pages of {origin[:200]!a} may not call this server",
                why="it is another site",
                next="Add it to server.allowed_origins if it is yours.",
                origin=ascii(origin[:200])[1:-1],
            )

    def _is_ours(self, name: str, port: str | None) -> bool:
        if is_loopback(name) or name == self._address.host or name in self._hosts or f"{name}:{port}" in self._hosts:
            return True
        # DNS rebinding needs a name; an IP address is safe.
        return self._address.is_wildcard and _is_address(name)


def scheme_of(scheme: str, headers: Headers) -> str:
    """Return the scheme that the browser used. A proxy that terminates TLS names it.

    The header needs no protection: a client gains nothing from a wrong value.
    """
    forwarded = headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
    return forwarded if forwarded in DEFAULT_PORTS else scheme


def is_local(client: str, headers: Headers) -> bool:
    """Whether a request was sent from this machine to a loopback name, without a proxy."""
    proxied = any(name in PROXY_HEADERS or name.startswith("x-forwarded-") for name in headers)
    return is_loopback(client) and is_loopback(_host(headers)[0]) and not proxied


def _host(headers: Headers) -> tuple[str, str | None]:
    given = headers.getlist("host")
    found = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
    if found is None:
        raise InvalidInput(
            "the Host header is missing or invalid",
            why="a request needs exactly one valid Host header",
            next="Send one Host header.",
        )
    return found["name"].strip("[]").rstrip("."), found["port"]


def _same_origin(origin: str, scheme: str, headers: Headers) -> bool:
    found = _ORIGIN.fullmatch(origin)
    if found is None or found["scheme"] != scheme_of(scheme, headers):
        return False
    default = f":{DEFAULT_PORTS[found['scheme']]}"
    return found["host"].removesuffix(default) == headers["host"].lower().removesuffix(default)


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False
