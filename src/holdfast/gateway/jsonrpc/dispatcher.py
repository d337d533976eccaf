"""The dispatcher of JSON-RPC: takes the bytes of a message, and returns the bytes of its answer."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from holdfast.access.principals import MissingScope, Principal
from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge
from holdfast.core.text import parse_large, render
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.jsonrpc.envelopes import UNKNOWN, EnvelopeCalls, is_envelope, open_envelope
from holdfast.gateway.jsonrpc.failures import RpcFailure, failure_of
from holdfast.gateway.jsonrpc.messages import Malformed, error_answer, invalid_request, read, result_answer
from holdfast.gateway.jsonrpc.methods import Methods
from holdfast.mcp.protocol import PARSE_ERROR

FULL = 8  # the answer to a batch has room for this many results of the maximum size

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RpcReply:
    """A reply: `body` is None if the client expects no answer; `status` is the HTTP status."""

    body: bytes | None
    status: int = HTTPStatus.OK


class Dispatcher:
    """Answers the messages of one caller; `request_id` identifies the request in the log."""

    def __init__(self, gateway: Gateway, caller: Principal, *, request_id: str, envelopes: EnvelopeCalls) -> None:
        self._config = gateway.engine.config
        self._methods = Methods(gateway, caller, request_id=request_id)
        self._caller = caller
        self._request_id = request_id
        self._envelopes = envelopes

    async def dispatch(self, body: bytes) -> RpcReply:
        """Answer a message: a request, a batch or an envelope. An invalid message gets an error response.

        Raises MissingScope if the only request needs more scopes. In a batch, that is an error response.
        """
        try:
            message: Any = await parse_large(body, limit=self._config.server.max_body_bytes)
        except HoldfastError as error:
            code = PARSE_ERROR if isinstance(error, InvalidInput) else None
            return _refusal(failure_of(error, request_id=self._request_id, code=code))
        match message:
            case list():
                return await self._batch(cast(list[Any], message))
            case dict() if is_envelope(cast(dict[str, Any], message)):
                return await self._envelope(cast(dict[str, Any], message))
            case _:
                return _reply(await self._answer(cast(object, message)))

    async def _batch(self, messages: list[Any]) -> RpcReply:
        """Answer each request, in order; at most `gateway.batch_parallel` of them run at the same time."""
        settings = self._config.gateway
        if not messages:
            return _refusal(invalid_request("a batch has at least one request", "Send one."))
        if len(messages) > settings.max_batch:
            why = f"a batch has at most {settings.max_batch} requests, and this one {len(messages)}"
            return _refusal(invalid_request(why, "Send it in parts, or raise gateway.max_batch."))
        answers: list[bytes | None] = [None] * len(messages)
        waiting = iter(enumerate(messages))
        room = FULL * settings.max_result_bytes

        async def work() -> None:
            nonlocal room
            for place, message in waiting:
                answer = await self._answer(message, in_batch=True)
                if answer is not None and len(answer) > room:
                    answer = error_answer(read(message).id, self._no_room(len(answer)))
                room -= len(answer or b"")
                answers[place] = answer

        async with asyncio.TaskGroup() as group:
            for _ in range(min(settings.batch_parallel, len(messages))):
                group.create_task(work())
        given = [answer for answer in answers if answer is not None]
        return _reply(b"[%b]" % b",".join(given) if given else None)

    def _no_room(self, size: int) -> RpcFailure:
        error = TooLarge(
            "the result is too large for this batch",
            why=f"it has {size} bytes, and there is no room for them beside the others",
            next="Send it in parts, or raise gateway.max_result_bytes.",
        )
        return failure_of(error, request_id=self._request_id)

    async def _answer(self, message: object, *, in_batch: bool = False) -> bytes | None:
        request = read(message)
        if isinstance(request, Malformed):
            return error_answer(request.id, request.failure)
        try:
            payload = await self._methods.call(request.method, request.params)
        except MissingScope as error:
            if not in_batch:
                raise
            failure = failure_of(error, request_id=self._request_id)
        except RpcFailure as raised:
            failure = raised
        else:
            return None if request.is_notification else result_answer(request.id, payload)
        if not request.is_notification:
            return error_answer(request.id, failure)
        log.info("request %s: a notification failed, %s", self._request_id, failure)
        return None

    async def _envelope(self, envelope: Mapping[str, Any]) -> RpcReply:
        """Answer in the old format: with the result of the service, or the status object and its HTTP status."""
        if not self._config.gateway.legacy_envelope:
            why = "the envelope before JSON-RPC is switched off here"
            return _refusal(
                invalid_request(why, 'Send "jsonrpc": "2.0", and `host/service/action/version` as the `method`.')
            )
        try:
            method, params = open_envelope(envelope)
            known = await self._methods.has_method(method)
            self._envelopes.note(self._caller.tenant, method if known else UNKNOWN)
            return _reply(await self._methods.call(method, params))
        except MissingScope:
            raise
        except HoldfastError as error:
            failure = failure_of(error, request_id=self._request_id)
        except RpcFailure as raised:
            failure = raised
        return RpcReply(render(failure.status), failure.status.status_code)


def _reply(answer: bytes | None) -> RpcReply:
    return RpcReply(answer, HTTPStatus.NO_CONTENT if answer is None else HTTPStatus.OK)


def _refusal(failure: RpcFailure) -> RpcReply:
    return RpcReply(error_answer(None, failure))
