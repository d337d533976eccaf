"""Settings of a source: which operations of its document become tools, and how its back end is reached. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.skills.request import Backend
from holdfast.skills.sources.source import Choice
from holdfast.skills.tool import LONGEST_TIMEOUT

MAX_ADDRESS = 2000  # characters
MAX_ENTRIES = 1000  # of a choice, of headers, of schemes
MAX_ENTRY = 2000  # characters of an entry

# Headers of the connection and the body, which a source cannot set.
_OURS = frozenset({
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
_TELLING = re.compile(r"(?i)(?:.*[_-])?(?:authorization|auth|api-?key|key|token|secret|password|passwd|signature|sig)")
_MENTION = re.compile(r"\{\{\s*secret:\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Which operations of a document become tools, and how these are called."""

    choice: Choice = field(default_factory=Choice)
    backend: Backend = field(default_factory=Backend)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets that are sent to its back end."""
        mentioned = (name for value in self.backend.headers.values() for name in _MENTION.findall(value))
        return tuple(sorted({*self.backend.auth.values(), *mentioned}))

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        choice = {each.name: getattr(self.choice, each.name) for each in fields(Choice)}
        return {"choice": msgspec.to_builtins(choice), "backend": self.backend.to_json()}


def settings_of(stored: Mapping[str, Any]) -> SourceSettings:
    """Return the settings of the stored form."""
    choice = msgspec.convert(stored.get("choice", {}), Choice)
    return SourceSettings(choice, msgspec.convert(stored.get("backend", {}), Backend))


def check_name(name: str) -> None:
    """Refuse an invalid name of a source."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"a source cannot be called {name!r:.100}",
            why="its name is not made of 1 to 63 letters, digits, hyphens and underscores",
            next="Give it a short name: tools that clash with others are led by it.",
        )


def checked(name: str, settings: SourceSettings) -> SourceSettings:
    """Return the settings of a source, if they are valid."""
    check_name(name)
    backend, choice = settings.backend, settings.choice
    base_url = None if backend.base_url is None else checked_address(backend.base_url, "its base URL").rstrip("/")
    if base_url is not None and ("?" in base_url or "#" in base_url):
        raise _unusable("its base URL has a query", "Give scheme, host and path alone.")
    for kind in ("operations", "tags", "paths"):
        _check_texts(getattr(choice, kind), kind)
    _check_texts([*backend.auth, *backend.headers], "headers and schemes")
    for scheme, secret in backend.auth.items():
        if not _SECRET_NAME.fullmatch(secret):
            next = "Name the secret; its value goes into `holdfast secrets set`."
            raise _unusable(f"the scheme {scheme!r:.100} is to be shown what is no name of a secret", next)
    for header, value in backend.headers.items():
        _check_header(header, value)
    timeout = backend.timeout
    if timeout is not None and not 0 < timeout <= LONGEST_TIMEOUT:
        raise _unusable(f"its time-out cannot be {timeout:g}", f"Give seconds, up to {LONGEST_TIMEOUT:g}.")
    return SourceSettings(choice, msgspec.structs.replace(backend, source=name, base_url=base_url))


def checked_address(text: str, what: str) -> str:
    """Return a web address, if it is valid and contains no user name or password."""
    try:
        parts = urlsplit(text)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fit, parts = False, urlsplit("")
    if not fit or len(text) > MAX_ADDRESS or re.search(r"[\s\x00-\x1f\x7f\ud800-\udfff{}]", text):
        raise _unusable(f"{what} is no address on the web: {text!r:.200}", "Begin it with https:// or http://.")
    if "@" in parts.netloc:
        raise _unusable(f"{what} holds a name or a password", "Use a secret: `holdfast secrets set NAME`.")
    return text


def check_location(url: str) -> None:
    """Refuse the address of a document if it is invalid or contains a secret, as others can see it."""
    checked_address(url, "where its document is")
    for name in dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)):
        if _TELLING.fullmatch(name):
            next = "Give the document itself, or an address without it."
            raise _unusable(f"where its document is holds a secret, as {name:.60}, and is shown to others", next)


def _check_header(name: str, value: str) -> None:
    if not _HEADER.fullmatch(name) or name.lower() in _OURS:
        raise _unusable(f"the header {name!r:.100} is not for a source to say", "Leave it out.")
    if _UNSENDABLE.search(value) or len(value) > MAX_ENTRY:
        next = f"Give one line of at most {MAX_ENTRY} characters."
        raise _unusable(f"the header {name} has a value that cannot be sent", next)
    if _TELLING.fullmatch(name) and value and not _MENTION.search(value):
        next = "Use a secret: `holdfast secrets set NAME`, and {{secret:NAME}} in the header."
        raise _unusable(f"the header {name} holds its value as it is, and is shown to others", next)
    for mentioned in cast(list[str], _MENTION.findall(value)):
        if not _SECRET_NAME.fullmatch(mentioned):
            raise _unusable(f"the header {name} mentions what is no name of a secret", "Write {{secret:NAME}}.")


def _check_texts(texts: Iterable[str], what: str) -> None:
    given = list(texts)
    if len(given) > MAX_ENTRIES:
        raise _unusable(f"it has {len(given)} {what}", f"Give at most {MAX_ENTRIES}.")
    if any(not text.strip() or len(text) > MAX_ENTRY or re.search("[\0\ud800-\udfff]", text) for text in given):
        next = f"Give texts of up to {MAX_ENTRY} characters, none of them empty."
        raise _unusable(f"of its {what}, one is empty, too long, or has what cannot be stored", next)


def _unusable(why: str, next: str) -> InvalidInput:
    return InvalidInput("the source cannot be stored", why=why, next=next)
