"""All errors of the engine, as one tree.

    HoldfastError
    ├── InvalidInput
    │   └── BadSetting
    ├── NotFound
    ├── Unauthenticated
    ├── Forbidden
    ├── Conflict
    ├── AlreadyExists
    ├── Busy
    ├── TooLarge
    ├── Overloaded
    │   └── RateLimited
    ├── CommandFailed
    ├── LimitReached
    │   └── BudgetSpent
    ├── Unavailable
    │   ├── DatabaseAway
    │   ├── ModelFailed
    │   ├── TimedOut
    │   ├── ShuttingDown
    │   ├── PortTaken
    │   └── DataFolderUnusable
    └── Broken
        └── SchemaMismatch

Each class has a stable `code`. `holdfast.core.wires` maps the codes to HTTP, JSON-RPC, MCP and exit codes.
"""

from typing import ClassVar


class HoldfastError(Exception):
    """An error: what failed, why, and what to do next. `details` are for programs and contain only JSON values."""

    code: ClassVar[str] = "failed"

    def __init__(self, what: str, *, why: str = "", next: str = "", **details: object) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next = next
        self.details = details

    def __str__(self) -> str:
        reason = f"{self.what}: {self.why}" if self.why else self.what
        return f"{reason.rstrip('.')}. {self.next}" if self.next else reason

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (type(self), self.args), self.__dict__  # __init__ has arguments that pickle does not know


def _unpickled(kind: type[HoldfastError], args: tuple[object, ...]) -> HoldfastError:
    error = kind.__new__(kind)
    error.args = args
    return error


class InvalidInput(HoldfastError):
    """The input is invalid; the same call fails again until the input is corrected."""

    code = "invalid_input"


class BadSetting(InvalidInput):
    """A setting is unknown, has the wrong type, is out of range or is given twice."""

    code = "bad_setting"


class NotFound(HoldfastError):
    """The object does not exist, or the caller may not see it."""

    code = "not_found"


class Unauthenticated(HoldfastError):
    """The caller is not authenticated: the credential is missing, invalid or expired."""

    code = "unauthenticated"


class Forbidden(HoldfastError):
    """The caller is not allowed to do this."""

    code = "forbidden"


class Conflict(HoldfastError):
    """Someone else changed it first; read the current version and try again."""

    code = "conflict"

    def __init__(
        self, what: str, *, expected: int, current: int, why: str = "", next: str = "", **details: object
    ) -> None:
        why = why or f"it is at version {current}, not {expected}"
        next = next or "Read the current version and try again."
        super().__init__(what, why=why, next=next, expected=expected, current=current, **details)
        self.expected = expected
        self.current = current


class AlreadyExists(HoldfastError):
    """The name or key is taken."""

    code = "already_exists"


class Busy(HoldfastError):
    """Someone else is working on it; try again later, or wait in the queue."""

    code = "busy"


class TooLarge(HoldfastError):
    """A size limit is exceeded."""

    code = "too_large"


class Overloaded(HoldfastError):
    """A limit of concurrent work is reached; try again after `retry_after` seconds."""

    code = "overloaded"

    def __init__(self, what: str, *, retry_after: float, why: str = "", next: str = "", **details: object) -> None:
        next = next or f"Try again in {retry_after:g} seconds."
        super().__init__(what, why=why, next=next, retry_after=retry_after, **details)
        self.retry_after = retry_after


class RateLimited(Overloaded):
    """A limit of the caller is reached: `details` has its name as `limit`. Try again after `retry_after` seconds."""

    code = "rate_limited"


class CommandFailed(HoldfastError):
    """A command failed in a worker, or it was cancelled. `details` has its error and its correlation id."""

    code = "command_failed"


class LimitReached(HoldfastError):
    """A run of an agent reached its limit of steps, tokens, time or cost."""

    code = "limit_reached"


class BudgetSpent(LimitReached):
    """A budget for model calls is spent: `details` has its name as `limit`. A retry fails until it starts again."""

    code = "budget_spent"


class Unavailable(HoldfastError):
    """A required part is not available now; the same call may succeed later."""

    code = "unavailable"


class DatabaseAway(Unavailable):
    """The database does not respond, or the connection to it was lost."""

    code = "database_away"


class ModelFailed(Unavailable):
    """A language model is unreachable, returned an error or broke off. `retryable`: a retry may succeed."""

    code = "model_failed"

    def __init__(
        self,
        what: str,
        *,
        model: str,
        retryable: bool,
        status: int | None = None,
        retry_after: float = 0.0,
        why: str = "",
        next: str = "",
        **details: object,
    ) -> None:
        super().__init__(what, why=why, next=next, model=model, status=status, retryable=retryable, **details)
        self.model = model
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class TimedOut(Unavailable):
    """The time limit is exceeded."""

    code = "timed_out"


class ShuttingDown(Unavailable):
    """The server or the engine is stopping."""

    code = "shutting_down"


class PortTaken(Unavailable):
    """Another process listens on the port."""

    code = "port_taken"


class DataFolderUnusable(Unavailable):
    """The data folder cannot be used: it is not writable, belongs to another account, or has another version."""

    code = "data_folder_unusable"


class Broken(HoldfastError):
    """A bug or damaged data in the engine, not a mistake of the caller."""

    code = "broken"


class SchemaMismatch(Broken):
    """The schema does not match the program: a migration is changed, missing or misplaced, or the schema is newer."""

    code = "schema_mismatch"
