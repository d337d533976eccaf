"""Names: what users, agents, sessions and apps are known by. Any text will do, as long as it can be part of a key."""

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.text import store

MAX_NAME_BYTES = 2000  # an index holds no more than a third of a page


def stored_name(what: str, name: str) -> str:
    """The name as it is stored, if it can be; `what` it is the name of stands in the error."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the name of the {what} is no text", why=f"it is {name!r:.100}", next="Give a text.")
    if not name:
        raise InvalidInput(f"the name of the {what} is empty", next="Give one.")
    stored = store(name)
    size = len(stored.encode())
    if size > MAX_NAME_BYTES:
        raise TooLarge(
            f"the name of this {what} is too long",
            why=f"it has {size} bytes, at most {MAX_NAME_BYTES} are taken",
            next="Use a shorter one, such as a hash of it.",
            size=size,
            limit=MAX_NAME_BYTES,
        )
    return stored
