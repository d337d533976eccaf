"""URI templates such as `shop://orders/{order}` (RFC 6570, level 1). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote_to_bytes

from holdfast.core.errors import InvalidInput

MAX_URI = 2000  # characters

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:[^\s{}]")
_STEPS = re.compile(r"[/\\]")


@dataclass(frozen=True)
class UriTemplate:
    """A URI with parameters. Without parameters, it stands for one URI."""

    text: str

    def __post_init__(self) -> None:
        wrong = _find_error(self.text)
        if wrong:
            raise InvalidInput(
                f"{self.text!r:.200} is not a resource URI",
                why=wrong,
                next="Write it like shop://orders/{order}: with a scheme, and with names in braces as parameters.",
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in their order in the URI."""
        return tuple(_EXPRESSION.findall(self.text))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded parameters of a URI, or None if it does not match or a value is unsafe."""
        found = self._pattern.fullmatch(uri) if len(uri) <= MAX_URI else None
        if found is None:
            return None
        values = {name: _decode(raw) for name, raw in found.groupdict().items()}
        decoded = {name: value for name, value in values.items() if value is not None}
        return decoded if len(decoded) == len(values) else None

    def expand(self, values: Mapping[str, str]) -> str:
        """Return the URI with percent-encoded values."""
        return _EXPRESSION.sub(lambda place: quote(values[place[1]], safe=""), self.text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = _EXPRESSION.split(self.text)
        places = [f"(?P<{part}>[^/?#]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)]
        return re.compile("".join(places))


def _decode(raw: str) -> str | None:
    """Percent-decode a value once. Return None for an unsafe value.

    A function may use the value in a file path or a request. So path traversal, absolute paths and control characters
    are unsafe.
    """
    try:
        value = unquote_to_bytes(raw).decode()
    except UnicodeError:
        return None
    steps = _STEPS.split(value)
    unsafe = ".." in steps or "." in steps or (len(steps) > 1 and steps[0] in ("", "~")) or value[1:3] in (":\\", ":/")
    return None if unsafe or any(ord(each) < 32 or ord(each) == 127 for each in value) else value


def _find_error(text: object) -> str:
    if not isinstance(text, str) or len(text) > MAX_URI:
        return f"it is not a string of at most {MAX_URI} characters"
    if not _SCHEME.match(text):
        return "it does not begin with a scheme"
    names: list[str] = _EXPRESSION.findall(text)
    unfit = next((name for name in names if not _NAME.fullmatch(name)), None)
    if unfit is not None:
        return f"{{{unfit:.60}}} is not a valid parameter"
    if len({*names}) < len(names):
        return "a parameter occurs twice"
    if "}{" in text:
        return "two parameters have no text between them"
    return "a brace is not closed or not opened" if re.search(r"[{}]", _EXPRESSION.sub("", text)) else ""
