"""The hosts of an address that names several: which is tried first, and when one that failed is tried again."""

import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

AVOIDED = 60.0  # seconds for which a host that failed comes last


class Hosts:
    """Addresses of one host each, in the order to try them in.

    One that failed comes after the others for a while; then one caller tries it, and the others go on without it.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = urls
        self._retry_at: dict[str, float] = {}

    def order(self, now: float | None = None) -> list[str]:
        """The addresses, those that are expected to answer first."""
        now = time.monotonic() if now is None else now
        ready = [url for url in self.urls if self._retry_at.get(url, now) <= now]
        for url in ready:
            if url in self._retry_at:
                self._retry_at[url] = now + AVOIDED
        return [*ready, *(url for url in self.urls if url not in ready)]

    def failed(self, url: str, now: float | None = None) -> None:
        """It does not answer."""
        self._retry_at[url] = (time.monotonic() if now is None else now) + AVOIDED

    def answered(self, url: str) -> None:
        """It answers."""
        self._retry_at.pop(url, None)


@lru_cache(maxsize=64)
def hosts_of(url: str) -> Hosts:
    """The hosts of an address; everybody in this process learns together which of them answer."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    if "," in place:
        lead = f"{login}@" if login else ""
        return Hosts([urlunsplit(parts._replace(netloc=lead + host)) for host in place.split(",")])
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if "," not in given.get("host", ""):
        return Hosts([url])
    hosts, ports = given["host"].split(","), given.get("port", "").split(",")
    only = ports[0] if len(ports) == 1 else ""  # one port is that of all
    each = [{**given, "host": host, "port": port} for host, port in zip_longest(hosts, ports, fillvalue=only) if host]
    queries = [urlencode({name: value for name, value in one.items() if value}) for one in each]
    return Hosts([f"{url.partition('?')[0]}?{query}" for query in queries])
