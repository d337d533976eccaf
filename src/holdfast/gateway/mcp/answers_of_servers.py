"""Answers of other MCP servers, which are passed on within limits."""

from typing import Any, cast

from holdfast.core.errors import TooLarge
from holdfast.execution.outcomes import weight_of


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list; anything else is left out."""
    items = cast(list[Any], value) if isinstance(value, list) else []
    return [each for each in items if isinstance(each, dict)]


def check_weight(what: str, value: Any, most: int) -> None:
    """Raise TooLarge if a value has more characters than are given."""
    if weight_of(value, most) > most:
        raise TooLarge(f"{what} is too large", why=f"at most {most} characters are given", limit=most)
