"""Everything that can go wrong, as one tree.

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
    ├── CommandFailed
    ├── LimitReached
    ├── Unavailable
    │   ├── DatabaseAway
    │   ├── ModelFailed
    │   ├── TimedOut
    │   ├── ShuttingDown
    │   ├── PortTaken
    │   └── DataFolderUnusable
    └── Broken
        └── SchemaMismatch

Each class has a stable `code`; `holdfast.core.wires` says what a code means on each wire.
"""

from typing import ClassVar


class HoldfastError(Exception):
    """Something failed: what, why, and what to do next; `details` are for programs and hold JSON values only."""

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


class InvalidInput(HoldfastError):
    """What was given cannot be used; the same call fails again until it is changed."""

    code = "invalid_input"


class BadSetting(InvalidInput):
    """A setting is unknown, of the wrong kind, out of range or given twice."""

    code = "bad_setting"


class NotFound(HoldfastError):
    """There is no such thing, or none that the caller may see."""

    code = "not_found"


class Unauthenticated(HoldfastError):
    """Nobody proved who is calling."""

    code = "unauthenticated"


class Forbidden(HoldfastError):
    """The caller is known and may not do this."""

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
    """Someone else works on it; try again when they have done, or wait in the queue."""

    code = "busy"


class TooLarge(HoldfastError):
    """It is bigger than a limit allows."""

    code = "too_large"


class Overloaded(HoldfastError):
    """There is more to do than can be done; try again after `retry_after` seconds."""

    code = "overloaded"

    def __init__(self, what: str, *, retry_after: float, why: str = "", next: str = "", **details: object) -> None:
        next = next or f"Try again in {retry_after:g} seconds."
        super().__init__(what, why=why, next=next, retry_after=retry_after, **details)
        self.retry_after = retry_after


class CommandFailed(HoldfastError):
    """A worker could not do a command, or somebody cancelled it; `details` has its error and correlation id."""

    code = "command_failed"


class LimitReached(HoldfastError):
    """A run of an agent took all that it may take: steps, tokens, time or money."""

    code = "limit_reached"


class Unavailable(HoldfastError):
    """Something that is needed is not there now; the same call may succeed later."""

    code = "unavailable"


class DatabaseAway(Unavailable):
    """The database does not answer, or the connection to it was lost."""

    code = "database_away"


class ModelFailed(Unavailable):
    """A language model could not answer: away, refusing, or broken off; `retryable`: it may answer when asked later."""

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
    """It took longer than it was allowed to."""

    code = "timed_out"


class ShuttingDown(Unavailable):
    """The server is stopping and takes nothing new."""

    code = "shutting_down"


class PortTaken(Unavailable):
    """Another process listens on the port."""

    code = "port_taken"


class DataFolderUnusable(Unavailable):
    """The data folder cannot be used: not writable, someone else's, or of another version."""

    code = "data_folder_unusable"


class Broken(HoldfastError):
    """A defect or damage of ours, not of the caller."""

    code = "broken"


class SchemaMismatch(Broken):
    """Schema and program do not fit: a changed, missing or misplaced migration, or a schema newer than the program."""

    code = "schema_mismatch"
