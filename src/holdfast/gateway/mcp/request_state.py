"""The state of a request that waits for its client. The client carries it, encrypted, so that only the engine reads it.

It opens only for the same caller, method, name and arguments, for a limited time, on every node of the installation. It
holds what the client was asked, and what it has answered before.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from holdfast.access.principals import Principal
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import uuid7
from holdfast.core.text import parse, render
from holdfast.execution.encryption import EncryptionKey
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.policies.approval import QUESTION
from holdfast.mcp.headers import NAMED
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

PURPOSE = b"holdfast mcp request state 1"
AGAIN = "make the request anew, without `requestState`"

Answers = Mapping[str, Mapping[str, Any]]  # by the names of the questions

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that a state belongs to, and its caller."""

    caller: Principal
    method: str
    params: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The parts that have to be the same when the state is opened."""
        caller, name = self.caller, self.params.get(NAMED.get(self.method, ""))
        arguments = hashlib.sha256(_canonical(self.params.get("arguments") or {})).hexdigest()
        return render([str(caller.tenant), caller.user, caller.agent, self.method, name, arguments]).decode()


@dataclass(frozen=True, slots=True)
class RequestState:
    """The names of the questions to a client, and its answers to earlier ones; `nonce` is unique.

    `waiting` identifies the call of another server that waits for the answers, if one does (see `Client`). `digests`
    are those of the questions of other servers.
    """

    questions: frozenset[str]
    answers: Answers
    nonce: UUID
    until: datetime
    waiting: str = ""
    digests: Mapping[str, str] = field(default_factory=dict[str, str])

    async def use(self, database: Database) -> None:
        """Mark it as used, because an approval is good for one call; raise McpError if it was used before."""
        if not await database.run(sql("use_state"), self.nonce, self.until):
            raise McpError(INVALID_PARAMS, f"`requestState` was used before, and is good for one call; {AGAIN}")


class RequestStates:
    """Seals and opens request states."""

    def __init__(self, secret: bytes, *, lifetime: timedelta) -> None:
        self._key = EncryptionKey(secret, purpose=PURPOSE)
        self._lifetime = lifetime

    @classmethod
    def of(cls, gateway: Gateway) -> "RequestStates":
        """Return those of a gateway. Each node can open the states of the other nodes."""
        engine = gateway.engine
        lifetime = timedelta(minutes=engine.config.gateway.state_minutes)
        return gateway.cache.get(cls, lambda: cls(engine.secret, lifetime=lifetime))

    def seal(
        self,
        origin: Origin,
        questions: Iterable[str],
        answers: Answers,
        *,
        now: datetime,
        waiting: str = "",
        digests: Mapping[str, str] | None = None,
    ) -> str:
        """Return the sealed state of a request, for its client to carry."""
        until = now + self._lifetime
        content = render([sorted(questions), answers, uuid7(), until, waiting, digests or {}]).decode()
        return base64.urlsafe_b64encode(self._key.seal(content, about=origin.text)).decode()

    def open(self, sealed: object, origin: Origin, *, now: datetime) -> RequestState:
        """Open a sealed state; raise McpError if it belongs to another request, or has expired."""
        try:
            data = base64.b64decode(str(sealed).encode(), altchars=b"-_", validate=True)
            questions, answers, nonce, until, *more = parse(self._key.open(data, about=origin.text).encode())
        except (HoldfastError, binascii.Error, UnicodeEncodeError):
            raise McpError(
                INVALID_PARAMS,
                "`requestState` cannot be opened: it was changed, or is of another request or another caller; "
                f"send it as it was given, with the same arguments, or {AGAIN}",
            ) from None
        state = RequestState(frozenset(questions), answers, UUID(nonce), datetime.fromisoformat(until), *more)
        if state.until <= now:
            raise McpError(INVALID_PARAMS, f"`requestState` has expired, at {until}; {AGAIN}")
        return state


def answers_of(given: Answers, state: RequestState | None) -> Answers:
    """Return all answers of a client. It may answer before a tool asks, but an approval counts only if asked for.

    Earlier answers take precedence over new ones: the tool has already used them.
    """
    if QUESTION in given and (state is None or QUESTION not in state.questions):
        given = {name: answer for name, answer in given.items() if name != QUESTION}
    return given if state is None else {**given, **state.answers}


def _canonical(value: object) -> bytes:
    """Encode a value as JSON with sorted keys."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, sort_keys=True).encode()
