"""Session names: what a session is stored as when another user already has its id.

A session id is unique per app and user for callers, and per tenant in the database. The first who uses an id has it
stored as it is. A session of another user with the same id is stored under a qualified name, and every caller still
gets the id back that they gave.
"""

import hashlib
from urllib.parse import quote

from holdfast.core.names import MAX_NAME_BYTES
from holdfast.core.text import store

PREFIX = "adk:"  # ADK's sessions were the first to be qualified; holdfast.create_conversation knows it, too
MAX_QUALIFIER = 200  # characters of an app and a user that stand before a session's id


def qualified(app: str, user: str, session_id: str) -> str:
    """The name of a user's session in an app where another has taken its id."""
    app, user = (quote(name, safe="", errors="surrogatepass") for name in (app, user))
    if len(app) + len(user) > MAX_QUALIFIER:
        name = f"{PREFIX}{_digest(f'{app}/{user}')}/{session_id}"
    else:
        name = f"{PREFIX}//{app}/{user}/{session_id}"
    if len(store(name).encode()) <= MAX_NAME_BYTES:
        return name
    return f"{PREFIX}{_digest(f'{app}/{user}/{store(session_id)}')}"


def names(app: str, user: str, session_id: str) -> tuple[str, str]:
    """The two names under which a user's session may be stored: its id, and the qualified one.

    An id that looks qualified is stored qualified from the start: nobody can take another's name in advance.
    """
    other = qualified(app, user, session_id)
    return (other if session_id.startswith(PREFIX) else session_id), other


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
