"""The client of a legacy request: gets notifications and questions on the stream of the answer.

A tool that asks waits for a moment. If the answer takes longer, because a person gives it, the tool runs again from its
beginning when the answer has arrived, as in the modern version. The tool's timeout does not run in between.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, cast

from holdfast.core.errors import HoldfastError, TimedOut, Unavailable
from holdfast.core.ids import uuid7
from holdfast.gateway.mcp.legacy.questions import Answers
from holdfast.gateway.mcp.notified_client import NotifiedClient
from holdfast.gateway.mcp.replies import describe_mismatch, undeclared_capabilities
from holdfast.mcp.inputs import Forwarded, InputRequest, MissingCapability, Reply, wire_of
from holdfast.skills.client import InputRequired

MOMENT: Final = 2.0  # seconds that a running tool waits for an answer

ExpectAnswers = Callable[[Sequence[str]], AbstractAsyncContextManager[Answers]]
SendMessage = Callable[[Mapping[str, Any]], Awaitable[None]]

log = logging.getLogger(__name__)


class LegacyClient(NotifiedClient):
    """The client of one request of a session: `send` sends it a message, `expect_answers` receives its answers.

    `params` are those of the request, `limit` is how many seconds an answer may take.
    """

    is_modern = False

    def __init__(
        self,
        send: SendMessage,
        expect_answers: ExpectAnswers,
        detach: Callable[[], Awaitable[None]],
        params: Mapping[str, Any],
        *,
        capabilities: Mapping[str, Any],
        limit: float,
        level: str,
    ) -> None:
        super().__init__(self._notification, progress_token=_progress_token(params), level=level)
        self._send = send
        self._expect_answers = expect_answers
        self._detach = detach
        self.capabilities = capabilities
        self._limit = limit
        self._open: dict[str, tuple[str, InputRequest]] = {}  # by question id
        self._arriving: list[Answers] = []
        self._known: dict[str, Reply | HoldfastError] = {}  # by the names of the questions
        self._forwarded: dict[str, Forwarded] = {}  # questions of other servers
        self._asking = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        """Stop waiting for answers, and tell the client so."""
        try:
            async with self._stack:
                for id in self._open:
                    await self._notification(
                        "notifications/cancelled", {"requestId": id, "reason": "the call has ended"}
                    )
        except Unavailable as error:
            log.warning("what a client was asked could not be taken back: %s", error)

    async def detach(self) -> None:
        """Let the client disconnect, and come back for the rest."""
        await self._detach()

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Return the client's answers; raise InputRequired if they take longer."""
        self._refuse_undeclared(requests)
        async with self._asking:
            unknown = {name: request for name, request in requests.items() if not self._is_known(name, request)}
            await self._ask(unknown)
            if unknown and not await self._collect(MOMENT):
                raise InputRequired(unknown)
        replies: dict[str, Reply] = {}
        for name in requests:
            reply = self._known[name]
            if isinstance(reply, HoldfastError):
                raise reply
            replies[name] = reply
        return replies

    async def wait_for_answers(self) -> None:
        """Wait until all questions are answered; raise TimedOut after `limit` seconds."""
        if not await self._collect(self._limit):
            raise TimedOut(
                "the client did not answer in time",
                why=f"it had {self._limit:g} seconds",
                next="Call it again, or raise gateway.state_minutes.",
            )

    async def _ask(self, requests: Mapping[str, InputRequest]) -> None:
        """Send the questions that are not open already."""
        names = {name for name, _ in self._open.values()}
        questions = {f"holdfast-{uuid7().hex}": (name, each) for name, each in requests.items() if name not in names}
        if questions:
            self._arriving.append(await self._stack.enter_async_context(self._expect_answers(list(questions))))
            self._open |= questions
            for id, (_, request) in questions.items():
                await self._send({"jsonrpc": "2.0", "id": id, **wire_of(request)})

    async def _collect(self, seconds: float) -> bool:
        """Collect answers. Return whether all questions are answered in time."""
        for arrived in await asyncio.gather(*(answers.wait(seconds) for answers in self._arriving)):
            for id in self._open.keys() & arrived.keys():
                name, request = self._open.pop(id)
                self._known[name] = _reply_of(request, arrived[id])
        return not self._open

    def _is_known(self, name: str, request: InputRequest) -> bool:
        """Whether the question was asked before. Another server may ask a different one under the same name."""
        if isinstance(request, Forwarded) and self._forwarded.setdefault(name, request) != request:
            self._forwarded[name] = request
            self._known.pop(name, None)
            self._open = {id: each for id, each in self._open.items() if each[0] != name}
        return name in self._known

    def _refuse_undeclared(self, requests: Mapping[str, InputRequest]) -> None:
        missing = undeclared_capabilities(self.capabilities, requests.values())
        if missing:
            raise MissingCapability(missing)

    async def _notification(self, method: str, params: Mapping[str, Any]) -> None:
        try:
            await self._send({"jsonrpc": "2.0", "method": method, "params": params})
        except Unavailable as error:  # a lost notification must not fail the call
            log.warning("a client could not be told how its call goes: %s", error)


def _progress_token(params: Mapping[str, Any]) -> str | int | None:
    meta: object = params.get("_meta")
    token: object = cast(dict[str, Any], meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def _reply_of(request: InputRequest, message: Mapping[str, Any]) -> Reply | HoldfastError:
    """Return the client's reply, or an error if it refuses or its answer does not fit."""
    result = message.get("result")
    if not isinstance(result, dict):
        error: object = message.get("error")
        reason = cast(dict[str, Any], error).get("message") if isinstance(error, dict) else None
        return Unavailable(f"the client refused the request: {reason!r:.200}")
    found = cast(dict[str, Any], result)
    wrong = describe_mismatch(request, found)
    return Unavailable(f"the client's answer does not match the request: {wrong}") if wrong else Reply(found)
