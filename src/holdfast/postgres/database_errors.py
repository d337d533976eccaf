"""Translates database errors by SQLSTATE, never by constraint names, which differ on a distributed server."""

from holdfast.core.errors import (
    AlreadyExists,
    Broken,
    DatabaseAway,
    Forbidden,
    HoldfastError,
    InvalidInput,
    NotFound,
    Overloaded,
    SchemaMismatch,
    TimedOut,
    TooLarge,
    Unavailable,
)

LOST_A_RACE = frozenset({"40001", "40P01"})
NOT_YET = frozenset({"57P01", "57P02", "57P03"})  # shutting down, crashed, starting up
REFUSED_LOGIN = frozenset({"28000", "28P01"})

# The driver's errors for an unsent statement. The second: the server has said that it closes the connection.
UNSENT = ("connection is closed", "another operation (2) is in progress")


def sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of an error of the server; an empty string for other errors."""
    return str(getattr(error, "sqlstate", None) or "")


def is_lost(error: BaseException) -> bool:
    """Whether the connection is lost. Then it is unknown whether a statement in progress took effect."""
    state = sqlstate(error)
    if state:
        return state.startswith("08") or state in NOT_YET
    return is_unsent(error) or (isinstance(error, OSError) and not isinstance(error, TimeoutError))


def is_unsent(error: BaseException) -> bool:
    """Whether the connection was lost before the statement was sent. It took no effect, and can be sent again."""
    message = str(error)
    return not sqlstate(error) and any(words in message for words in UNSENT)


def translate(error: BaseException) -> HoldfastError:
    """Return the error that callers see."""
    refusal = getattr(error, "refusal", None)
    if isinstance(refusal, HoldfastError):
        return refusal
    state = sqlstate(error)
    message = str(error).partition("\n")[0][:500]
    if isinstance(error, TimeoutError) or state == "57014":
        return TimedOut("the database took too long", why=message or "the statement timed out", next="Try again.")
    if is_lost(error):
        return DatabaseAway(
            "the connection to the database was lost",
            why=message,
            next="Try again; a write in progress may or may not have taken effect.",
            sqlstate=state,
        )
    if state == "55P03":
        return TimedOut(
            "another transaction held a lock on a row for too long",
            why=message,
            next="Try again when that transaction has ended, or raise database.lock_timeout.",
            sqlstate=state,
        )
    if state in LOST_A_RACE:
        return Overloaded(
            "other transactions repeatedly changed the same rows", why=message, retry_after=1, sqlstate=state
        )
    if state == "42704" and "holdfast.tenant" in message:
        return Broken("a statement ran without a tenant", why=message, next="Report this bug.", sqlstate=state)
    kind, what = _KINDS.get(state) or _CLASSES.get(state[:2]) or (Broken, "the database rejected a statement")
    return kind(what, why=message, sqlstate=state)


_KINDS: dict[str, tuple[type[HoldfastError], str]] = {
    "23505": (AlreadyExists, "it already exists"),
    "23503": (InvalidInput, "it refers to something that does not exist, or something else still refers to it"),
    "P0002": (NotFound, "it no longer exists"),
    "42501": (Forbidden, "the database denied permission"),
    "42P01": (SchemaMismatch, "the database lacks a table that this program needs"),
    "42703": (SchemaMismatch, "the database lacks a column that this program needs"),
    "42883": (SchemaMismatch, "the database lacks a function that this program needs"),
    "25P02": (InvalidInput, "the transaction is aborted because an earlier statement in it failed"),
    "25006": (Unavailable, "the database is read-only"),
    "53300": (Unavailable, "the database has no free connections"),
    "3D000": (Unavailable, "the database does not exist"),
}
_CLASSES: dict[str, tuple[type[HoldfastError], str]] = {
    "22": (InvalidInput, "the database cannot store this value"),
    "23": (InvalidInput, "the value violates a constraint of the database"),
    "54": (TooLarge, "the value exceeds a size limit of the database"),
    "28": (Unavailable, "the database rejected the login"),
    "53": (Unavailable, "the database is out of space, memory or connections"),
    "58": (Unavailable, "the database server reports a system error"),
}


def unreachable(error: BaseException) -> HoldfastError:
    """Return the error that callers see if a connection cannot be opened."""
    found = translate(error)
    if isinstance(found, DatabaseAway) or not sqlstate(error):
        return DatabaseAway(
            "the database cannot be reached",
            why=str(error) or type(error).__name__,
            next="Check that it runs and that HOLDFAST_DATABASE_URL is correct.",
        )
    return found
