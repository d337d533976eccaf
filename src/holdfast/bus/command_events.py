"""The two events of commands on the log, invocation and completion. Programs in any language can exchange them."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from holdfast.bus.messages import SCHEMA_HEADER
from holdfast.bus.records import Record
from holdfast.bus.topics import EVENTS
from holdfast.core.errors import HoldfastError, InvalidInput

# These mark our own records, whose rows are stored already.
COMMAND_HEADER = "holdfast-command"
COMPLETION_HEADER = "holdfast-completion"

INVOCATION_SCHEMA = "skill-invocation/1.0.0"
MAX_NAME = 200
LARGEST = 2**31 - 1  # maximum in PostgreSQL of a priority and of a number of attempts
MAX_MESSAGE = 10_000  # characters of an error that are stored
CANCELLED = "cancelled"

Error = dict[str, Any]  # with `code` and `message`


class SkillInvocationEvent(msgspec.Struct, frozen=True, rename="camel"):
    """Calls a handler. The answer belongs on the topic `reply_to`, with the same correlation id."""

    correlation_id: str
    skill_name: str
    arguments: Mapping[str, Any] = {}
    reply_to: str = EVENTS


class SkillCompletionEvent(msgspec.Struct, frozen=True, rename="camel"):
    """Answers an invocation with a result or an error."""

    correlation_id: str
    result: Any = None
    error: Any = None


Event = TypeVar("Event", SkillInvocationEvent, SkillCompletionEvent)


def event_of(record: Record, kind: type[Event]) -> Event:
    """Decode the event of a record. Unknown fields are ignored: other programs may add some."""
    try:
        event = msgspec.convert(record.value, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"record {record.id} is not a {kind.__name__}", why=str(error)) from None
    check_name("correlation id", event.correlation_id)
    return event


def check_name(what: str, name: object) -> str:
    """Return the name if it is valid."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise InvalidInput(f"{name!r:.300} is not a valid {what}", next=f"Use a string of 1 to {MAX_NAME} characters.")
    return name


def is_whole(number: object, least: int, most: int) -> bool:
    """Whether it is an integer in this range."""
    return isinstance(number, int) and least <= number <= most


def invocation_headers(event: SkillInvocationEvent) -> dict[str, str]:
    """Return the headers of our own invocations."""
    return {SCHEMA_HEADER: INVOCATION_SCHEMA, COMMAND_HEADER: event.correlation_id}


def error_of(error: BaseException) -> Error:
    """Return the error object for an exception."""
    if isinstance(error, HoldfastError):
        return {"code": error.code, "message": str(error)[:MAX_MESSAGE]}
    try:
        message = str(error) or "no message"
    except Exception:  # noqa: BLE001 - `__str__` may be the handler's code, too
        message = "its message cannot be read"
    return {"code": "failed", "message": f"{type(error).__name__}: {message}"[:MAX_MESSAGE]}


def foreign_error(error: Any) -> Error | None:
    """Return the error object for a foreign worker's error of any form, or None if there is none."""
    if error is None or error is False:
        return None
    if not isinstance(error, dict):
        return {"code": "failed", "message": str(error)[:MAX_MESSAGE]}
    return {"code": "failed", "message": "it failed without a message", **error}
