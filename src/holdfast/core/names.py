"""Names of users, agents, sessions and apps: any text that is short enough for an index key.

For callers, a session id is unique per app and user. In the database, it is unique per tenant. The session that uses an
id first is stored under this id. A session of another user with the same id is stored under a qualified name. Every
caller gets the id that they passed.
"""

import hashlib
from urllib.parse import quote

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.text import restore, store

MAX_NAME_BYTES = 2000  # an index entry can have a third of a page at most
PREFIX = (
    "adk:"  # from ADK's sessions, the first with qualified names; the SQL function create_conversation uses it, too
)
MAX_QUALIFIER = 200  # characters of app and user before the session id


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


def qualified_name(app: str, user: str, session_id: str) -> str:
    """Return the qualified name of a session, for an id that another session already has."""
    app, user = (quote(name, safe="", errors="surrogatepass") for name in (app, user))
    if len(app) + len(user) > MAX_QUALIFIER:
        name = f"{PREFIX}{_digest(f'{app}/{user}')}/{session_id}"
    else:
        name = f"{PREFIX}//{app}/{user}/{session_id}"
    if len(store(name).encode()) <= MAX_NAME_BYTES:
        return name
    return f"{PREFIX}{_digest(f'{app}/{user}/{store(session_id)}')}"


def shortened_name(name: str, most: int = MAX_NAME_BYTES) -> str:
    """Return a name whose stored form has at most `most` bytes: a longer one is cut, and ends with its hash."""
    stored = store(name)
    if len(stored.encode()) <= most:
        return name
    digest = _digest(stored)
    kept = stored.encode()[: most - len(digest) - 3].decode(errors="ignore")
    return restore(f"{kept}…{digest}")


def stored_names(app: str, user: str, session_id: str) -> tuple[str, str]:
    """Return the two names under which a session may be stored: its id, and the qualified name.

    An id that looks like a qualified name is always qualified, so no user can take another's name in advance.
    """
    other = qualified_name(app, user, session_id)
    return (other if session_id.startswith(PREFIX) else session_id), other


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
