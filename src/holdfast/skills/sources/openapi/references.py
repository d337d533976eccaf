"""Resolves references inside a document. Nothing is fetched."""

import re
from typing import Any, cast
from urllib.parse import unquote

MOST_HOPS = 32

_INDEX = re.compile("[0-9]{1,9}")


class UnusablePart(Exception):
    """A part of the document cannot be used. Has its path and the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class References:
    """Resolves the references of one document."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._found: dict[str, tuple[Any, str]] = {}

    def target(self, reference: object, path: str) -> tuple[Any, str]:
        """Return the target of a reference at `path`, and its path. Raise UnusablePart if it does not exist."""
        if not isinstance(reference, str):
            raise UnusablePart(path, "its $ref is not a string")
        found = self._found.get(reference)
        if found is None:
            found = self._found[reference] = self._look_up(reference, path)
        return found

    def follow(self, node: Any, path: str) -> tuple[dict[str, Any], str]:
        """Return the object at `path`, or the one to which its references lead, and its path."""
        for _ in range(MOST_HOPS):
            if not isinstance(node, dict):
                raise UnusablePart(path, "it is not an object")
            node = cast(dict[str, Any], node)
            if "$ref" not in node:
                return node, path
            node, path = self.target(node["$ref"], path)
        raise UnusablePart(path, f"it needs more than {MOST_HOPS} references, or refers to itself")

    def _look_up(self, reference: str, path: str) -> tuple[Any, str]:
        if not reference.startswith("#"):
            raise UnusablePart(path, f"it refers to another document, which is not fetched: {reference[:200]}")
        missing = UnusablePart(path, f"it refers to a part that does not exist: {reference[:200]}")
        if not reference.startswith("#/"):
            raise missing
        names = tokens(reference)
        node: Any = self._root
        for name in names:
            if isinstance(node, dict) and name in node:
                node = cast(dict[str, Any], node)[name]
            elif isinstance(node, list) and _INDEX.fullmatch(name) and int(name) < len(cast(list[Any], node)):
                node = cast(list[Any], node)[int(name)]
            else:
                raise missing
        return node, ".".join(names)


def tokens(reference: str) -> list[str]:
    """Return the names in the path of a local reference."""
    return [unquote(token).replace("~1", "/").replace("~0", "~") for token in reference.split("/")[1:]]
