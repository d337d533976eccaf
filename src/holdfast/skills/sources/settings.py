"""Settings of a source: which operations of its document become tools, and how its back end is reached. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import Backend
from holdfast.skills.sources.graphql.rules import SelectionRules, check_rules
from holdfast.skills.sources.source import Choice
from holdfast.skills.tool import LONGEST_TIMEOUT

MAX_ADDRESS = 2000  # characters
MAX_ENTRIES = 1000  # of a choice, of headers, of schemes
MAX_ENTRY = 2000  # characters of an entry

# Headers of the connection and the body, which a source cannot set.
_RESERVED_HEADERS = frozenset({
    "accept-encoding", "connection", "content-length", "content-type", "cookie", "expect", "host", "keep-alive",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
NAME = r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,62}"
_NAME = re.compile(NAME)
_SECRET_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,125}")
HEADER_NAME = r"[!#$%&'*+.^_`|~0-9a-zA-Z-]{1,200}"
HEADER_VALUE = r"[^\x00-\x08\x0a-\x1f\x7f]*"
_HEADER = re.compile(HEADER_NAME)
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
# Names of headers and query parameters that contain secrets.
_SECRET = re.compile(r"(?i)(?:.*[_-])?(?:authorization|auth|api-?key|key|token|secret|password|passwd|signature|sig)")
_SECRET_REFERENCE = re.compile(r"\{\{\s*secret:\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Which operations of a document become tools, how these are called, and what GraphQL tools ask for."""

    choice: Choice = field(default_factory=Choice)
    backend: Backend = field(default_factory=Backend)
    selection: SelectionRules = field(default_factory=SelectionRules)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that are sent to its back end."""
        mentioned = (name for value in self.backend.headers.values() for name in _SECRET_REFERENCE.findall(value))
        return tuple(sorted({*self.backend.auth.values(), *mentioned}))

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        choice = {each.name: getattr(self.choice, each.name) for each in fields(Choice)}
        stored = {"choice": msgspec.to_builtins(choice), "backend": self.backend.to_json()}
        if self.selection != SelectionRules():
            stored["selection"] = msgspec.to_builtins(self.selection)
        return stored


def settings_of(stored: Mapping[str, Any]) -> SourceSettings:
    """Return the settings of the stored form."""
    choice = msgspec.convert(stored.get("choice", {}), Choice)
    backend = msgspec.convert(stored.get("backend", {}), Backend)
    return SourceSettings(choice, backend, msgspec.convert(stored.get("selection", {}), SelectionRules))


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
    timeout = backend.timeout
    if timeout is not None and not 0 < timeout <= LONGEST_TIMEOUT:
        raise _settings_error(f"its timeout {timeout:g} is invalid", f"Use seconds, up to {LONGEST_TIMEOUT:g}.")
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


def check_location(url: str) -> None:
    """Refuse the address of a document if it is invalid or contains a secret, as others can see it."""
    check_address(url, "the URL of its document")
    for name in dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)):
        if _SECRET.fullmatch(name):
            next = "Pass the document itself, or a URL without the secret."
            raise _settings_error(
                f"the URL of its document contains a secret in {name:.60}, and other users can see it", next
            )


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
