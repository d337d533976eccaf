"""Names of users, agents, sessions and apps: any text that is short enough for an index key."""

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.text import store

MAX_NAME_BYTES = 2000  # an index entry can have a third of a page at most


def stored_name(what: str, name: str) -> str:
    """Validate a name and return its stored form. Errors call it the name of `what`."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the name of the {what} is not a string", why=f"it is {name!r:.100}", next="Pass a string.")
    if not name:
        raise InvalidInput(f"the name of the {what} is empty", next="Pass a name.")
    stored = store(name)
    size = len(stored.encode())
    if size > MAX_NAME_BYTES:
        raise TooLarge(
            f"the name of the {what} is too long",
            why=f"it has {size} bytes, the limit is {MAX_NAME_BYTES}",
            next="Use a shorter name, such as a hash of this one.",
            size=size,
            limit=MAX_NAME_BYTES,
        )
    return stored
