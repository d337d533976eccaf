"""Trouble of a run: what passes, so that the run is done later, and what of the rest its users are told."""

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

OURS = 500  # the status on HTTP of what is our own affair

log = logging.getLogger(__name__)


def is_passing(error: HoldfastError) -> bool:
    """Whether a run is left for later, or for another: the trouble is the database's, not what it was given."""
    if isinstance(error, Busy | DatabaseAway | Overloaded | TimedOut):
        return True
    return "sqlstate" in error.details and not isinstance(error, InvalidInput | TooLarge | AlreadyExists)


def told(error: HoldfastError, run: UUID) -> dict[str, Any]:
    """What is stored of why a run failed, and told to its users; what they have no part in is for the log."""
    if HTTP_STATUS[error.code] == OURS:
        log.error("the run %s failed: %s", run, error)
        error = Broken(error.what, next=f"The server's log says more: look for the run {run}.")
    return {"code": error.code, "message": str(error), "what": error.what, "why": error.why, "next": error.next}
