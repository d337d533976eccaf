"""Errors of runs: which ones are transient, so that the run is retried later, and what users see of the others."""

import logging
from typing import Any
from uuid import UUID

from holdfast.core.errors import (
    AlreadyExists,
    Broken,
    Busy,
    DatabaseAway,
    HoldfastError,
    InvalidInput,
    Overloaded,
    TimedOut,
    TooLarge,
)
from holdfast.core.wires import HTTP_STATUS

OURS = 500  # the HTTP status of internal errors

log = logging.getLogger(__name__)


def is_passing(error: HoldfastError) -> bool:
    """Return whether an error is transient, so that the run is left for later or for another process.

    Such an error comes from the database, not from the input.
    """
    if isinstance(error, Busy | DatabaseAway | Overloaded | TimedOut):
        return True
    return "sqlstate" in error.details and not isinstance(error, InvalidInput | TooLarge | AlreadyExists)


def told(error: HoldfastError, run: UUID) -> dict[str, Any]:
    """Return what is stored of a run's error and shown to users. The details of internal errors only go to the log."""
    if HTTP_STATUS[error.code] == OURS:
        log.error("the run %s failed: %s", run, error)
        error = Broken(error.what, next=f"The server's log says more: look for the run {run}.")
    return {"code": error.code, "message": str(error), "what": error.what, "why": error.why, "next": error.next}
