"""The state of a request that waits for its client, which the client itself carries: sealed, so that only we read it.

It opens for the same caller, the same method, the same name and the same arguments, on every node of the installation,
and for a time. What it holds is what the client was asked, and what it has answered before.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from holdfast.access.principals import Principal
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import uuid7
from holdfast.core.text import parse, render
from holdfast.execution.sealing import SealingKey
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.mcp.headers import NAMED
from holdfast.gateway.policies.approval import QUESTION
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

KEPT = "mcp request states"  # under which a gateway keeps what seals them
PURPOSE = b"holdfast mcp request state 1"
AGAIN = "make the request anew, without `requestState`"

Answers = Mapping[str, Mapping[str, Any]]  # by the names that they were asked under

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose request a state belongs to, and which."""

    caller: Principal
    method: str
    params: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All of it that has to be the same again."""
        caller, name = self.caller, self.params.get(NAMED.get(self.method, ""))
        arguments = hashlib.sha256(_canonical(self.params.get("arguments") or {})).hexdigest()
        return render([str(caller.tenant), caller.user, caller.agent, self.method, name, arguments]).decode()


@dataclass(frozen=True, slots=True)
class RequestState:
    """The names of what a client was asked, and its answers to what it was asked before; `nonce`: no other has it."""

    asked: frozenset[str]
    answers: Answers
    nonce: UUID
    until: datetime

    async def use(self, database: Database) -> None:
        """Use it up: what a person has allowed is done once. McpError where it was used before."""
        if not await database.run(sql("use_state"), self.nonce, self.until):
            raise McpError(INVALID_PARAMS, f"`requestState` was used before, and is good for one call; {AGAIN}")


class RequestStates:
    """Seals and opens states."""

    def __init__(self, secret: bytes, *, lifetime: timedelta) -> None:
        self._key = SealingKey(secret, purpose=PURPOSE)
        self._lifetime = lifetime

    @classmethod
    def of(cls, gateway: Gateway) -> "RequestStates":
        """Those of a gateway, and of its like on other nodes."""
        found = gateway.kept.get(KEPT)
        if found is None:
            engine = gateway.engine
            lifetime = timedelta(minutes=engine.config.gateway.state_minutes)
            found = gateway.kept[KEPT] = cls(engine.secret, lifetime=lifetime)
        return found

    def seal(self, origin: Origin, asked: Iterable[str], answers: Answers, *, now: datetime) -> str:
        """The state of a request as its client carries it."""
        content = render([sorted(asked), answers, uuid7(), now + self._lifetime]).decode()
        return base64.urlsafe_b64encode(self._key.seal(content, about=origin.text)).decode()

    def open(self, sealed: object, origin: Origin, *, now: datetime) -> RequestState:
        """What the client was asked, and has answered; McpError where the state is not one of this request."""
        try:
            data = base64.b64decode(str(sealed).encode(), altchars=b"-_", validate=True)
            asked, answers, nonce, until = parse(self._key.open(data, about=origin.text).encode())
        except (HoldfastError, binascii.Error, UnicodeEncodeError):
            raise McpError(
                INVALID_PARAMS,
                "`requestState` cannot be opened: it was changed, or is of another request or another caller; "
                f"send it as it was given, with the same arguments, or {AGAIN}",
            ) from None
        state = RequestState(frozenset(asked), answers, UUID(nonce), datetime.fromisoformat(until))
        if state.until <= now:
            raise McpError(INVALID_PARAMS, f"`requestState` has expired, at {until}; {AGAIN}")
        return state


def answers_of(given: Answers, state: RequestState | None) -> Answers:
    """All that a client answers. It may say ahead what a tool would ask; that a call is allowed, only when it is asked.

    What was answered before stays as it was: the tool has gone on from there.
    """
    if QUESTION in given and (state is None or QUESTION not in state.asked):
        given = {name: answer for name, answer in given.items() if name != QUESTION}
    return given if state is None else {**given, **state.answers}


def _canonical(value: object) -> bytes:
    """A value as JSON, the same for any order of names."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except UnicodeEncodeError:  # of half an emoji
        return json.dumps(value, sort_keys=True).encode()
