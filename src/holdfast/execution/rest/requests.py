"""Requests: builds the HTTP request for a call of a tool, without I/O.

Arguments become parts of the URL, headers, cookies and the body as the tool's `RequestTemplate` says. If it says
nothing, each `{name}` in the URL is an argument, and the others go into the query, or into a JSON body if the method
has one. Secrets are inserted last, and only into headers, the query and cookies.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.execution.egress import checked_url
from holdfast.execution.rest.bodies import encode_body
from holdfast.execution.rest.styles import in_header, in_path, in_query, pairs
from holdfast.skills.request import AuthScheme, Backend, BodyField, RequestBody, RequestParameter, RequestTemplate
from holdfast.skills.tool import Tool

USER_AGENT = "Holdfast"
ENCODINGS = "gzip, deflate"  # `responses` decompresses them, up to a limit
QUERY_METHODS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})

_ABSOLUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?")
_PLACE = re.compile(r"\{([^{}/?]+)\}")
_SECRET = re.compile(r"\{\{\s*secret:([a-zA-Z0-9][a-zA-Z0-9_.-]*)\s*\}\}")
_METHOD = re.compile(r"(?!CONNECT|TRACE)[A-Z]{1,20}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-zA-Z-]+")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_OURS = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_COOKIE = re.compile(r"[\s;,\"\\]")
_NOTHING = Backend()


@dataclass(frozen=True, slots=True, repr=False)
class WireRequest:
    """A request to send; its URL is encoded. Its repr shows nothing that may be secret."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes | None

    def __repr__(self) -> str:
        return f"WireRequest({self.method} {self.url.partition('?')[0]})"


@dataclass(frozen=True, slots=True)
class _Address:
    """A URL with `{name}` placeholders. The text between them is encoded."""

    origin: str
    path: str
    query: str


def origin_of(tool: Tool) -> str:
    """Return the scheme, host and port that a tool calls. No argument changes them."""
    return _address_of(tool).origin


def secret_names(tool: Tool) -> frozenset[str]:
    """Return the names of the secrets that a call sends to the back end."""
    backend = tool.backend or _NOTHING
    names = {backend.auth[scheme.name] for scheme in _schemes_with_secrets(tool)}
    return frozenset(names | secrets_in(_request(tool).headers) | secrets_in(backend.headers))


def wire_request(tool: Tool, arguments: Mapping[str, Any], secrets: Mapping[str, str]) -> WireRequest:
    """Build the request of a call. `secrets` are the values of the secrets that `secret_names` returns."""
    request = _request(tool)
    method = request.method.upper()
    if not _METHOD.fullmatch(method):
        raise InvalidInput(f"{tool.name} cannot be called", why=f"{request.method[:20]!r} is not a supported method")
    given = {name: value for name, value in arguments.items() if value is not None}
    address = _address_of(tool)
    if request.parameters or request.body is not None:
        parameters, body = request.parameters, request.body
    else:
        parameters, body = _default_parameters(address, method, arguments)
    draft = _Draft(request.accept)
    places = {parameter.name: parameter for parameter in parameters if parameter.location == "path"}
    path = _fill(address.path, places, given)
    if address.query:
        query = _PLACE.sub(lambda found: in_path(*_place_value(found[1], places, given)), address.query)
        draft.query += query.split("&")
    for parameter in parameters:
        value = given.get(parameter.argument)
        if value is not None and parameter.location != "path":
            draft.add(parameter, value)
    content = encode_body(body, arguments, method=method) if body is not None else None
    if content is not None:
        draft.set_header("Content-Type", content[1], "the type of the body")
    _add_settings(draft, tool, request, secrets)
    if draft.cookies:
        draft.set_header("Cookie", "; ".join(draft.cookies), "a cookie")
    url = f"{address.origin}{path}?{'&'.join(draft.query)}" if draft.query else address.origin + path
    return WireRequest(method, url, dict(draft.headers.values()), content[0] if content is not None else None)


class _Draft:
    """A request under construction: its query, cookies and headers."""

    def __init__(self, accept: str) -> None:
        self.query: list[str] = []
        self.cookies: list[str] = []
        self.headers = {  # by lower-case name
            "accept": ("Accept", accept),
            "accept-encoding": ("Accept-Encoding", ENCODINGS),
            "user-agent": ("User-Agent", USER_AGENT),
        }

    def add(self, parameter: RequestParameter, value: Any) -> None:
        match parameter.location:
            case "query":
                self.query += in_query(parameter, value)
            case "cookie":
                self.cookies += in_query(parameter, value)
            case _:
                self.set_header(parameter.name, in_header(parameter, value), f"the argument `{parameter.argument}`")

    def set_header(self, name: str, value: str, source: str) -> None:
        value = value.strip()
        if not _HEADER.fullmatch(name) or name.lower() in _OURS:
            raise InvalidInput(f"the header {name[:60]!r} cannot be sent", why="a tool may not set it")
        if _UNSENDABLE.search(value):
            why = f"{source[:80]} contains characters that a header cannot have, such as a line break"
            raise InvalidInput(f"the header {name} cannot be sent", why=why)
        self.headers[name.lower()] = (name, value)


def secrets_in(headers: Mapping[str, str]) -> set[str]:
    """Return the names of the secrets that headers mention."""
    return {name for value in headers.values() for name in _SECRET.findall(value)}


def fill_secrets(value: str, secrets: Mapping[str, str]) -> str:
    """Replace `{{secret:NAME}}` in a text."""
    return _SECRET.sub(lambda found: secrets[found[1]], value)


def _add_settings(draft: _Draft, tool: Tool, request: RequestTemplate, secrets: Mapping[str, str]) -> None:
    """Add the headers and credentials that an operator has set. They override the arguments of a model."""
    backend = tool.backend or _NOTHING
    for headers in (request.headers, backend.headers):
        for name, value in headers.items():
            draft.set_header(name, fill_secrets(value, secrets), "the setting of the back end")
    for scheme in _schemes_with_secrets(tool):
        name = backend.auth[scheme.name]
        _add_credential(draft, scheme, secrets[name], f"the secret {name}")


def _add_credential(draft: _Draft, scheme: AuthScheme, secret: str, source: str) -> None:
    match scheme.kind:
        case "bearer":
            draft.set_header("Authorization", f"Bearer {secret}", source)
        case "basic":
            if ":" not in secret:
                raise Unavailable(f"{source} is invalid", why="basic authentication needs the form `user:password`")
            draft.set_header("Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}", source)
        case "header":
            draft.set_header(scheme.parameter, secret, source)
        case "query":
            draft.query = [*_others(draft.query, scheme.parameter), *pairs(scheme.parameter, secret)]
        case "cookie":
            if _COOKIE.search(secret) or _UNSENDABLE.search(secret):
                raise Unavailable(f"{source} is invalid", why="it contains characters that a cookie cannot have")
            draft.cookies = [*_others(draft.cookies, scheme.parameter), f"{scheme.parameter}={secret}"]


def _others(pairs: list[str], name: str) -> list[str]:
    """Return the pairs with other names: an argument must not replace a credential."""
    return [pair for pair in pairs if unquote_plus(pair.partition("=")[0]) != name]


def _schemes_with_secrets(tool: Tool) -> list[AuthScheme]:
    """Return the security schemes of a call whose secrets are sent."""
    backend = tool.backend or _NOTHING
    return [scheme for scheme in _chosen_schemes(tool) if not backend.has_token_for(scheme)]


def _chosen_schemes(tool: Tool) -> tuple[AuthScheme, ...]:
    """Return the security schemes of a call: the first alternative with a secret or a token for each scheme."""
    alternatives = _request(tool).security
    backend = tool.backend or _NOTHING
    for schemes in alternatives:
        if schemes and all(scheme.name in backend.auth or backend.has_token_for(scheme) for scheme in schemes):
            return schemes
    if not alternatives or () in alternatives:
        return ()
    missing = next(scheme.name for scheme in alternatives[0] if scheme.name not in backend.auth)
    raise Unavailable(
        f"{tool.name} cannot be called",
        why=f"the security scheme `{missing}` of the source `{backend.source}` has no secret",
        next="Ask an operator to set one (`holdfast secrets set NAME`), and to name it in the `auth` of the source for "
        f"`{missing}`.",
    )


def _request(tool: Tool) -> RequestTemplate:
    if tool.request is None:
        raise InvalidInput(f"{tool.name} cannot be called", why="it has no URL")
    return tool.request


def _address_of(tool: Tool) -> _Address:
    backend = tool.backend or _NOTHING
    return _address(_request(tool).url, backend.base_url or "", backend.source)


@lru_cache(maxsize=4096)
def _address(url: str, base_url: str, source: str) -> _Address:
    whole = url if _ABSOLUTE.match(url) else f"{base_url.rstrip('/')}/{url.lstrip('/')}"
    found = _ABSOLUTE.match(whole)
    if found is None:
        raise InvalidInput(
            f"{url[:200]!r} has no host",
            why=f"the source `{source}` has no URL of its back end",
            next="Ask an operator to set its base_url.",
        )
    scheme, host, path, query = found.groups()
    if "{" in host or "}" in host:
        raise InvalidInput(f"{whole[:200]!r} cannot be called", why="an argument may not change the host")
    origin = str(checked_url(f"{scheme}://{host}").origin())
    return _Address(origin, _literal(path) or "/", _literal(query or ""))


def _literal(text: str) -> str:
    """Encode a URL of an API document, except what is already encoded and the `{name}` placeholders."""
    pieces = _PLACE.split(text)  # every second piece is a name
    safe = "/%:@!$&'()*+,;=?~"
    return "".join(f"{{{piece}}}" if number % 2 else quote(piece, safe=safe) for number, piece in enumerate(pieces))


def _default_parameters(
    address: _Address, method: str, arguments: Mapping[str, Any]
) -> tuple[tuple[RequestParameter, ...], RequestBody | None]:
    """Return the default places of the arguments, for a tool that does not specify them."""
    placed = set(_PLACE.findall(address.path)) | set(_PLACE.findall(address.query))
    parameters = [RequestParameter(name, name, "path", "simple") for name in placed]
    others = [name for name in arguments if name not in placed]
    if method not in QUERY_METHODS:
        body = (
            RequestBody("application/json", fields=tuple(BodyField(name, name) for name in others)) if others else None
        )
        return tuple(parameters), body
    for name in others:
        kind = "application/json" if isinstance(arguments[name], dict) else None
        parameters.append(RequestParameter(name, name, "query", explode=True, content_type=kind))
    return tuple(parameters), None


def _fill(template: str, places: Mapping[str, RequestParameter], given: Mapping[str, Any]) -> str:
    """Fill a path with arguments. None can change its other segments: empty, `.` and `..` segments are refused."""
    if "{" not in template:
        return template

    def fill(found: re.Match[str]) -> str:
        parameter, value = _place_value(found[1], places, given)
        _check_path_argument(parameter, value)
        return in_path(parameter, value)

    path = _PLACE.sub(fill, template)
    for before, after in zip(template.split("/"), path.split("/"), strict=False):
        if before != after and unquote(after) in ("", ".", ".."):
            raise InvalidInput(f"the path {path[:200]!r} cannot be called", why=f"{before} became {after!r}")
    return path


def _check_path_argument(parameter: RequestParameter, value: Any) -> None:
    text = in_header(parameter, value)
    if text.isalnum():
        return
    segments = re.split(r"[/\\]", unquote(text))
    if not text or "\0" in text or "." in segments or ".." in segments or (parameter.allow_reserved and "" in segments):
        raise InvalidInput(
            f"the argument `{parameter.argument[:60]}` is not valid in a path",
            why="it is empty" if not text else "it contains `.` or `..` as a segment, an empty segment, or a NUL",
        )


def _place_value(
    name: str, places: Mapping[str, RequestParameter], given: Mapping[str, Any]
) -> tuple[RequestParameter, Any]:
    parameter = places.get(name) or places.get(unquote(name)) or RequestParameter(name, name, "path", "simple")
    if parameter.argument not in given:
        raise InvalidInput(f"the argument `{parameter.argument[:60]}` is missing", why="it is a part of the URL")
    return parameter, given[parameter.argument]
