"""Settings of a source: which operations of its document become tools, and how its back end is reached. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import Backend, McpServer
from holdfast.skills.sources.graphql.rules import SelectionRules, check_rules
from holdfast.skills.sources.identity import check_identity
from holdfast.skills.sources.source import Choice, SourceKind
from holdfast.skills.tool import LONGEST_TIMEOUT

MAX_ADDRESS = 2000  # characters
MAX_ENTRIES = 1000  # of a choice, of headers, of schemes
MAX_ENTRY = 2000  # characters of an entry
FILE = "file:"  # begins the location of a document in the folder of the settings
MIN_RELOAD = 1.0  # seconds between two checks of a document
MAX_RELOAD = 30 * 86_400.0

# Headers of the connection and the body, which a source cannot set.
_RESERVED_HEADERS = frozenset({
    "accept-encoding", "connection", "content-length", "content-type", "cookie", "expect", "holdfast-identity", "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
NAME = r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,62}"
_NAME = re.compile(NAME)
_SECRET_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,125}")
HEADER_NAME = r"[!#$%&'*+.^_`|~0-9a-zA-Z-]{1,200}"
HEADER_VALUE = r"[^\x00-\x08\x0a-\x1f\x7f]*"
_HEADER = re.compile(HEADER_NAME)
PREFIX = r"[a-zA-Z0-9_-]{0,40}"
VARIABLE = r"[a-zA-Z_][a-zA-Z0-9_]{0,125}"
_PREFIX = re.compile(PREFIX)
_VARIABLE = re.compile(VARIABLE)
LOADER = r"[Ll][Dd]_|[Dd][Yy][Ll][Dd]_"  # begins variables that put other code into a program
_LOADER = re.compile(LOADER)
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
# Names of headers and query parameters that contain secrets.
_SECRET = re.compile(r"(?i)(?:.*[_-])?(?:authorization|auth|api-?key|key|token|secret|password|passwd|signature|sig)")
_SECRET_REFERENCE = re.compile(r"\{\{\s*secret:\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Which operations of a document become tools, how these are called, and what GraphQL tools ask for.

    `reload_seconds`: the seconds between two checks of the document; None: as the settings of the engine say; 0: it is
    never reloaded automatically. `by_hand`: somebody gave the document although its location is a service that can
    describe itself. It is not reloaded automatically, either: the service may say something else, or nothing.
    """

    choice: Choice = field(default_factory=Choice)
    backend: Backend = field(default_factory=Backend)
    reload_seconds: float | None = None
    selection: SelectionRules = field(default_factory=SelectionRules)
    by_hand: bool = False

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that are sent to its back end."""
        variables = self.backend.mcp.env if self.backend.mcp else {}
        values = [*self.backend.headers.values(), *variables.values()]
        mentioned = (name for value in values for name in _SECRET_REFERENCE.findall(value))
        identity = self.backend.identity
        client = {identity.client_secret} if identity is not None and identity.client_secret else set[str]()
        return tuple(sorted({*self.backend.auth.values(), *mentioned, *client}))

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        choice = {each.name: getattr(self.choice, each.name) for each in fields(Choice)}
        stored = {"choice": msgspec.to_builtins(choice), "backend": self.backend.to_json()}
        if self.reload_seconds is not None:
            stored["reload_seconds"] = self.reload_seconds
        if self.selection != SelectionRules():
            stored["selection"] = msgspec.to_builtins(self.selection)
        if self.by_hand:
            stored["by_hand"] = True
        return stored


def settings_of(stored: Mapping[str, Any]) -> SourceSettings:
    """Return the settings of the stored form."""
    choice = msgspec.convert(stored.get("choice", {}), Choice)
    backend = msgspec.convert(stored.get("backend", {}), Backend)
    selection = msgspec.convert(stored.get("selection", {}), SelectionRules)
    return SourceSettings(choice, backend, stored.get("reload_seconds"), selection, stored.get("by_hand", False))


def check_name(name: str) -> None:
    """Refuse an invalid name of a source."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"the source name {name!r:.100} is invalid",
            why="it must have 1 to 63 letters, digits, hyphens and underscores",
            next="Use a short name: it becomes a prefix of tools whose names clash with others.",
        )


def check_settings(name: str, settings: SourceSettings, *, is_endpoint: bool = False) -> SourceSettings:
    """Return the settings of a source, if they are valid. `is_endpoint`: its base URL is the whole address of calls.

    Then a slash at the end stays: some GraphQL services answer at no other address.
    """
    check_name(name)
    backend, choice = settings.backend, settings.choice
    base_url = None if backend.base_url is None else check_address(backend.base_url, "its base URL")
    if base_url is not None and not is_endpoint:
        base_url = base_url.rstrip("/")
    if base_url is not None and ("?" in base_url or "#" in base_url):
        raise _settings_error("its base URL has a query", "Use only scheme, host and path.")
    for kind in ("operations", "tags", "paths"):
        _check_texts(getattr(choice, kind), kind)
    _check_texts([*backend.auth, *backend.headers], "headers and schemes")
    for scheme, secret in backend.auth.items():
        if not _SECRET_NAME.fullmatch(secret):
            next = "Use the name of a secret, and store its value with `holdfast secrets set`."
            raise _settings_error(f"the security scheme {scheme!r:.100} has an invalid name of a secret", next)
    for header, value in backend.headers.items():
        _check_header(header, value)
    if backend.mcp is not None:
        _check_server(backend.mcp, has_headers=bool(backend.headers))
    check_identity(backend, check_address)
    timeout = backend.timeout
    if timeout is not None and not 0 < timeout <= LONGEST_TIMEOUT:
        raise _settings_error(f"its timeout {timeout:g} is invalid", f"Use seconds, up to {LONGEST_TIMEOUT:g}.")
    seconds = settings.reload_seconds
    if seconds is not None and seconds and not MIN_RELOAD <= seconds <= MAX_RELOAD:
        next = f"Use {MIN_RELOAD:g} to {MAX_RELOAD:g} seconds, or 0 for no reloads."
        raise _settings_error(f"its interval of {seconds:g} seconds is invalid", next)
    check_rules(settings.selection)
    return replace(settings, backend=msgspec.structs.replace(backend, source=name, base_url=base_url))


def check_address(text: str, what: str) -> str:
    """Return a web address, if it is valid and contains no user name or password."""
    try:
        parts = urlsplit(text)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fit, parts = False, urlsplit("")
    if not fit or len(text) > MAX_ADDRESS or re.search(r"[\s\x00-\x1f\x7f\ud800-\udfff{}]", text):
        raise _settings_error(f"{what} is not an HTTP URL: {text!r:.200}", "Begin it with https:// or http://.")
    if "@" in parts.netloc:
        raise _settings_error(f"{what} contains a user name or password", "Use a secret: `holdfast secrets set NAME`.")
    return text


def file_of(location: str) -> str:
    """Return the name of a file in the folder of the settings, or an empty text if the location is something else."""
    return location.removeprefix(FILE) if location.startswith(FILE) else ""


def asks_service(kind: SourceKind | None, location: str, backend: Backend) -> bool:
    """Whether the document of a source is what its GraphQL or JSON-RPC service answers, to a request with secrets."""
    if kind not in ("graphql", "jsonrpc") or not location or file_of(location):
        return False
    return (backend.base_url or location).rstrip("/") == location.rstrip("/")


def check_location(url: str) -> None:
    """Refuse the address of a document if it is invalid or contains a secret, as others can see it."""
    if file := file_of(url):
        parts = file.split("/")
        if len(file) > MAX_ADDRESS or not file.isprintable() or "\\" in file or not {"", ".", ".."}.isdisjoint(parts):
            next = "Write it like file:shop.yaml or file:shops/north.yaml."
            raise _settings_error(f"its file is not a name in the folder of the settings: {file!r:.200}", next)
        return
    check_address(url, "the URL of its document")
    for name in dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)):
        if _SECRET.fullmatch(name):
            next = "Pass the document itself, or a URL without the secret."
            raise _settings_error(
                f"the URL of its document contains a secret in {name:.60}, and other users can see it", next
            )


def _check_server(server: McpServer, *, has_headers: bool) -> None:
    if bool(server.command) == bool(server.url):
        raise _settings_error("an MCP server has an address or a command, and not both", "Pass one of them.")
    if server.url:
        check_address(server.url, "its address")
    if server.command and has_headers:
        raise _settings_error("a program takes no headers", "Set variables of its environment (--env).")
    if server.env and not server.command:
        raise _settings_error("only a program has an environment", "Pass headers instead.")
    _check_texts(server.command, "words of the command")
    if server.prefix is not None and not _PREFIX.fullmatch(server.prefix):
        next = "Use at most 40 letters, digits, hyphens and underscores."
        raise _settings_error(f"the prefix {server.prefix!r:.100} is invalid", next)
    for name, value in server.env.items():
        if not _VARIABLE.fullmatch(name) or _LOADER.match(name):
            raise _settings_error(f"a source cannot set the variable {name!r:.100}", "Remove it.")
        if "\0" in value or len(value) > MAX_ENTRY:
            raise _settings_error(f"the variable {name} has an invalid value", f"Use at most {MAX_ENTRY} characters.")
        if _SECRET.fullmatch(name) and value and not _SECRET_REFERENCE.search(value):
            next = "Use a secret: `holdfast secrets set NAME`, and {{secret:NAME}} in the variable."
            raise _settings_error(f"the variable {name} contains a secret, and other users can see it", next)


def _check_header(name: str, value: str) -> None:
    if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
        raise _settings_error(f"a source cannot set the header {name!r:.100}", "Remove the header.")
    if _UNSENDABLE.search(value) or len(value) > MAX_ENTRY:
        next = f"Use one line of at most {MAX_ENTRY} characters."
        raise _settings_error(f"the header {name} has an invalid value", next)
    if _SECRET.fullmatch(name) and value and not _SECRET_REFERENCE.search(value):
        next = "Use a secret: `holdfast secrets set NAME`, and {{secret:NAME}} in the header."
        raise _settings_error(f"the header {name} contains a secret, and other users can see it", next)
    for mentioned in cast(list[str], _SECRET_REFERENCE.findall(value)):
        if not _SECRET_NAME.fullmatch(mentioned):
            raise _settings_error(f"the header {name} has an invalid name of a secret", "Write {{secret:NAME}}.")


def _check_texts(texts: Iterable[str], what: str) -> None:
    entries = list(texts)
    if len(entries) > MAX_ENTRIES:
        raise _settings_error(f"it has {len(entries)} {what}", f"Use at most {MAX_ENTRIES}.")
    if any(not text.strip() or len(text) > MAX_ENTRY or re.search("[\0\ud800-\udfff]", text) for text in entries):
        next = f"Use texts of 1 to {MAX_ENTRY} characters."
        raise _settings_error(f"one of its {what} is empty, too long, or has invalid characters", next)


def _settings_error(why: str, next: str) -> InvalidInput:
    return InvalidInput("the source cannot be stored", why=why, next=next)
