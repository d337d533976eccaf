"""Addresses of operations, from the servers in their document."""

import re
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from holdfast.skills.sources.openapi.references import UnusablePart

MAX_URL = 1024  # characters: the size of the column

_VARIABLE = re.compile(r"\{([^{}]*)\}")


def address(
    servers: Sequence[tuple[Any, str]], path: str, *, location: str, base_url: str | None, notes: list[str]
) -> str:
    """Return the address of a path, with its parameters in braces.

    `servers` are lists of servers, each with its path in the document; the first list that is not empty counts. A
    relative address refers to the document's `location`. It stays a path if the location is not known or there is a
    `base_url`. Unusable parts of a server's address are added to `notes`.
    """
    below = path.partition("#")[0]
    if base_url is not None:
        return _check_length(below)
    server_lists = [
        (cast(list[Any], entries), place) for entries, place in servers if isinstance(entries, list) and entries
    ]
    entries, place = server_lists[0] if server_lists else ([], "")
    first_error: UnusablePart | None = None
    for index, server in enumerate(entries):
        try:
            found = _check_length(_below(_server(server, f"{place}.{index}", location), below))
        except UnusablePart as error:
            first_error = first_error or error
        else:
            if "?" in server["url"]:
                notes.append(f"{place}.{index}: omitted the query of the server's address")
            return found
    if first_error is not None:
        raise first_error
    return _check_length(_below(_resolve("/", "servers", location), below))


def swagger_servers(root: dict[str, Any], operation: dict[str, Any]) -> list[Any]:
    """Return the servers of a Swagger 2.0 document, from schemes, host and basePath."""
    values: Any = operation.get("schemes") or root.get("schemes")
    schemes = [
        scheme for scheme in cast(list[Any], values if isinstance(values, list) else []) if isinstance(scheme, str)
    ]
    host, base = root.get("host"), root.get("basePath")
    base = base if isinstance(base, str) else "/"
    if not isinstance(host, str) or not host:
        return [{"url": base}]
    schemes.sort(key=lambda scheme: scheme != "https")
    return [{"url": f"{scheme}://{host}/{base.lstrip('/')}"} for scheme in schemes or ("https",)]


def _server(server: Any, place: str, location: str) -> str:
    fields = cast(dict[str, Any], server) if isinstance(server, dict) else {}
    if not isinstance(fields.get("url"), str):
        raise UnusablePart(place, "the server has no address")
    variables = fields.get("variables")

    def default(found: re.Match[str]) -> str:
        variable: Any = cast(dict[str, Any], variables).get(found[1]) if isinstance(variables, dict) else None
        value: Any = cast(dict[str, Any], variable).get("default") if isinstance(variable, dict) else None
        if not isinstance(value, str | int | float):
            raise UnusablePart(place, f"the server's address has a variable without a default: {found[1]}")
        return str(value)

    return _resolve(_VARIABLE.sub(default, fields["url"].strip()), place, location)


def _resolve(url: str, place: str, location: str) -> str:
    try:
        if location.startswith(("http://", "https://")):
            url = urljoin(location, url)
        parts = urlsplit(url)
    except ValueError as error:
        raise UnusablePart(place, f"the server's address is invalid: {error}") from None
    if parts.scheme and parts.scheme not in ("http", "https"):
        raise UnusablePart(place, f"the server uses the scheme {parts.scheme}; only http and https are supported")
    if url.startswith("//"):
        url = f"https:{url}"
    if "@" in parts.netloc:
        raise UnusablePart(place, "the server's address contains a user name or password; use a secret instead")
    return url.partition("?")[0].partition("#")[0]


def _below(server: str, path: str) -> str:
    server = server.rstrip("/")
    if server and not urlsplit(server).netloc:
        server = f"/{server.lstrip('./')}" if server.strip("./") else ""
    return f"{server}/{path.lstrip('/')}"


def _check_length(url: str) -> str:
    if len(url) > MAX_URL:
        raise UnusablePart("", f"its address is longer than {MAX_URL} characters")
    return url
