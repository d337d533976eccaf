"""Database URLs, `postgresql://user:password@host/database?…`: their login, their database and their hosts."""

import os
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit, urlunsplit

HOST_SECONDS = "5"
AVOIDED = 60.0  # seconds for which a failed host comes last


def login_of(url: str) -> tuple[str | None, str | None]:
    """Return the user and the password of a URL, from the part before the host or from the parameters."""
    parts = urlsplit(url)
    parameters = parse_qs(parts.query)
    user = unquote(parts.username or "") or parameters.get("user", [""])[-1]
    password = unquote(parts.password or "") or parameters.get("password", [""])[-1]
    return user or None, password or None


def with_login(url: str, user: str | None, password: str | None, **parameters: str) -> str:
    """Return the URL with another login and additional parameters."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    login = quote(user or "", safe="") + (":" + quote(password, safe="") if password else "")
    own_parameters = {
        name: values[-1] for name, values in parse_qs(parts.query).items() if name not in ("user", "password")
    }
    query = urlencode({**own_parameters, **parameters}, quote_via=quote, safe="/")
    return urlunsplit((parts.scheme, f"{login}@{place}" if login else place, parts.path, query, ""))


def place_of(url: str) -> str:
    """Return the database of a URL, without the login: `host:port/database`."""
    parts = urlsplit(url)
    parameters = parse_qs(parts.query)
    hosts = (
        parameters["host"][-1].split(",")
        if "host" in parameters
        else (parts.netloc.rpartition("@")[2] or "localhost").split(",")
    )
    ports = parameters["port"][-1].split(",") if "port" in parameters else []
    places = [host if ":" in host.rpartition("]")[2] else f"{host}:{_nth(ports, n)}" for n, host in enumerate(hosts)]
    database = unquote(parts.path.lstrip("/")) or parameters.get("dbname", [""])[-1] or login_of(url)[0] or ""
    return f"{','.join(places).lower()}/{database}"


def _nth(ports: list[str], number: int) -> str:
    return (ports[number] if number < len(ports) else ports[-1] if ports else "") or "5432"


def for_program(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL and the environment for a program of PostgreSQL. Only the latter has the password."""
    user, password = login_of(url)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    if password is not None:
        environment["PGPASSWORD"] = password
    if "," in urlsplit(url).netloc:
        environment["PGCONNECT_TIMEOUT"] = HOST_SECONDS  # per host
    return with_login(url, user, None), environment


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
    parameters = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if "," not in parameters.get("host", ""):
        return Hosts([url])
    hosts, ports = parameters["host"].split(","), parameters.get("port", "").split(",")
    only = ports[0] if len(ports) == 1 else ""  # a single port is for all hosts
    each = [
        {**parameters, "host": host, "port": port} for host, port in zip_longest(hosts, ports, fillvalue=only) if host
    ]
    queries = [urlencode({name: value for name, value in one.items() if value}) for one in each]
    return Hosts([f"{url.partition('?')[0]}?{query}" for query in queries])
