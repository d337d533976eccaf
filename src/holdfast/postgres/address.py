"""Database URLs, `postgresql://user:password@host/database?…`: their login and their database."""

import os
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit, urlunsplit

HOST_SECONDS = "5"


def login_of(url: str) -> tuple[str | None, str | None]:
    """Return the user and the password of a URL, from the part before the host or from the parameters."""
    parts = urlsplit(url)
    given = parse_qs(parts.query)
    user = unquote(parts.username or "") or given.get("user", [""])[-1]
    password = unquote(parts.password or "") or given.get("password", [""])[-1]
    return user or None, password or None


def with_login(url: str, user: str | None, password: str | None, **parameters: str) -> str:
    """Return the URL with another login and additional parameters."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    login = quote(user or "", safe="") + (":" + quote(password, safe="") if password else "")
    given = {name: values[-1] for name, values in parse_qs(parts.query).items() if name not in ("user", "password")}
    query = urlencode({**given, **parameters}, quote_via=quote, safe="/")
    return urlunsplit((parts.scheme, f"{login}@{place}" if login else place, parts.path, query, ""))


def place_of(url: str) -> str:
    """Return the database of a URL, without the login: `host:port/database`."""
    parts = urlsplit(url)
    given = parse_qs(parts.query)
    hosts = (
        given["host"][-1].split(",") if "host" in given else (parts.netloc.rpartition("@")[2] or "localhost").split(",")
    )
    ports = given["port"][-1].split(",") if "port" in given else []
    places = [host if ":" in host.rpartition("]")[2] else f"{host}:{_nth(ports, n)}" for n, host in enumerate(hosts)]
    database = unquote(parts.path.lstrip("/")) or given.get("dbname", [""])[-1] or login_of(url)[0] or ""
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
