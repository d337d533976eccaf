"""A cache of objects that modules make from a gateway or a view, one of each class."""

from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind")


class ObjectCache:
    """Makes each object once. Classes distinguish them, so that each module has its own, with its own type."""

    def __init__(self) -> None:
        self._found: dict[type, object] = {}

    def get(self, kind: type[Kind], make: Callable[[], Kind]) -> Kind:
        """Return the object of a class. `make` makes it at the first call."""
        found = self._found.get(kind)
        if not isinstance(found, kind):
            found = self._found[kind] = make()
        return found
