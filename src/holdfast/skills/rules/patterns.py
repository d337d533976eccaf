"""Patterns of names: `*` stands for any characters, `\\*` for an asterisk. Pure, and linear in time."""

from dataclasses import dataclass

from holdfast.core.errors import InvalidInput

MAX_PATTERN = 500  # characters


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A pattern, as the texts between its asterisks. It matches whole values, to the letter."""

    text: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "NamePattern":
        """Read a pattern. Raise InvalidInput if it is too long, or ends in a single backslash."""
        if len(text) > MAX_PATTERN:
            raise InvalidInput(f"a pattern has at most {MAX_PATTERN} characters", why=f"this one has {len(text)}")
        parts, part, escaped = list[str](), "", False
        for character in text:
            if escaped and character not in "*\\":
                raise InvalidInput(f"`\\{character}` has no meaning in a pattern", next="Write `\\\\` for a backslash.")
            if escaped or character not in "*\\":
                part, escaped = part + character, False
            elif character == "\\":
                escaped = True
            else:
                parts.append(part)
                part = ""
        if escaped:
            raise InvalidInput("a pattern cannot end in a single backslash", next="Write `\\\\` for a backslash.")
        return cls(text, (*parts, part))

    @property
    def exact(self) -> str | None:
        """The only value that it matches, or None if it has an asterisk."""
        return self.parts[0] if len(self.parts) == 1 else None

    def matches(self, value: str) -> bool:
        """Whether the whole value matches."""
        first, *middle = self.parts
        if not middle:
            return value == first
        last = middle.pop()
        end = len(value) - len(last)
        if not value.startswith(first) or not value.endswith(last) or end < len(first):
            return False
        at = len(first)
        for part in middle:  # each at its first place: a later one leaves less room for the others
            at = value.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True
