"""The hosts of a URL that names several: in which order to try them, and when to retry a failed one."""

import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

AVOIDED = 60.0  # seconds for which a failed host comes last


class Hosts:
    """URLs of one host each, in the order to try them.

    A failed host comes last for a while. Then one caller retries it, while for all others it still comes last.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = urls
        self._retry_at: dict[str, float] = {}

    def order(self, now: float | None = None) -> list[str]:
        """Return the URLs, with those first that are expected to answer."""
        now = time.monotonic() if now is None else now
        ready = [url for url in self.urls if self._retry_at.get(url, now) <= now]
        for url in ready:
            if url in self._retry_at:
                self._retry_at[url] = now + AVOIDED
        return [*ready, *(url for url in self.urls if url not in ready)]

    def mark_failed(self, url: str, now: float | None = None) -> None:
        """Record that a host does not answer."""
        self._retry_at[url] = (time.monotonic() if now is None else now) + AVOIDED

    def mark_reachable(self, url: str) -> None:
        """Record that a host answers."""
        self._retry_at.pop(url, None)


@lru_cache(maxsize=64)
def hosts_of(url: str) -> Hosts:
    """Return the hosts of a URL. All callers in this process share the knowledge which of them answer."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    if "," in place:
        lead = f"{login}@" if login else ""
        return Hosts([urlunsplit(parts._replace(netloc=lead + host)) for host in place.split(",")])
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if "," not in given.get("host", ""):
        return Hosts([url])
    hosts, ports = given["host"].split(","), given.get("port", "").split(",")
    only = ports[0] if len(ports) == 1 else ""  # a single port is for all hosts
    each = [{**given, "host": host, "port": port} for host, port in zip_longest(hosts, ports, fillvalue=only) if host]
    queries = [urlencode({name: value for name, value in one.items() if value}) for one in each]
    return Hosts([f"{url.partition('?')[0]}?{query}" for query in queries])
