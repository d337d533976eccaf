"""Methods: what one caller can call, services by their methods and other tools by their names."""

import logging
from http import HTTPStatus
from time import monotonic
from typing import Any

from holdfast.access.principals import MissingScope, Principal
from holdfast.core.errors import HoldfastError, InvalidInput, NotFound, TimedOut, TooLarge
from holdfast.core.text import MAX_STORED_VALUES, parse, render
from holdfast.execution.outcomes import TEXT, Outcome
from holdfast.execution.runner import JSON
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.jsonrpc.discovery import render_document
from holdfast.gateway.jsonrpc.failures import failure_of, failure_of_outcome, internal_failure
from holdfast.gateway.jsonrpc.messages import Params
from holdfast.gateway.views import Listed
from holdfast.mcp.content import builtin
from holdfast.mcp.protocol import METHOD_NOT_FOUND

DISCOVER = "rpc.discover"

log = logging.getLogger(__name__)


class UnknownMethod(NotFound):
    """The caller sees no such method. The error does not reveal whether others see it."""

    def __init__(self, method: str) -> None:
        super().__init__(f"there is no method {method!r:.200}", next=f"`{DISCOVER}` lists those that there are.")


class Methods:
    """Calls methods for one caller; all calls share one deadline."""

    def __init__(self, gateway: Gateway, caller: Principal, *, request_id: str) -> None:
        settings = gateway.engine.config.gateway
        self._gateway = gateway
        self._caller = caller
        self._request_id = request_id
        self._seconds = settings.timeout
        self._deadline = monotonic() + settings.timeout
        self._most = settings.max_result_bytes

    async def call(self, method: str, params: Params) -> bytes:
        """Call a method and return its result as JSON; raise RpcFailure if it has none.

        Raises MissingScope if the caller may call it with more scopes.
        """
        try:
            if method == DISCOVER:
                return render_document(await self._gateway.tools(self._caller))
            outcome = await self._outcome(method, params)
            if outcome.status == "done":
                return payload_of(outcome, self._most)
            reason, failure = outcome.error, failure_of_outcome(outcome, request_id=self._request_id)
        except MissingScope:
            raise
        except UnknownMethod as error:
            raise failure_of(error, request_id=self._request_id, code=METHOD_NOT_FOUND) from None
        except HoldfastError as error:
            reason, failure = error, failure_of(error, request_id=self._request_id)
        except Exception as error:  # noqa: BLE001 - the caller always gets an answer
            reason, failure = error, internal_failure(request_id=self._request_id)
        if failure.status.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
            trace = reason if isinstance(reason, Exception) else None
            log.error("request %s broke in %.200s: %s", self._request_id, method, reason, exc_info=trace)
        raise failure

    async def has_method(self, method: str) -> bool:
        """Whether the caller sees such a method."""
        return method in (await self._gateway.tools(self._caller)).by_name

    async def _outcome(self, method: str, params: Params) -> Outcome:
        listed = (await self._gateway.tools(self._caller)).by_name.get(method)
        if listed is None:
            given = params if isinstance(params, dict) else {"params": params}
            await self._gateway.record_unseen(self._caller, method, given, UnknownMethod.code)
            raise UnknownMethod(method)
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimedOut(f"{method} was not called", next=f"All calls of a batch have {self._seconds:g} seconds.")
        arguments = by_name(listed, params) if isinstance(params, list) else params
        return await self._gateway.call(self._caller, method, arguments, timeout=left)


def by_name(listed: Listed, params: list[Any]) -> dict[str, Any]:
    """Return positional params as arguments by name, in the order of the schema."""
    names = [*listed.offer.shown.parameters.get("properties", {})]
    if len(params) > len(names):
        raise InvalidInput(
            f"{listed.tool.service or listed.name} was not called",
            why=f"it takes at most {len(names)} params, and {len(params)} were sent",
            next=f"In their order they are: {', '.join(names)[:500]}." if names else "Send none.",
        )
    return dict(zip(names, params, strict=False))


def payload_of(outcome: Outcome, most: int) -> bytes:
    """Return the complete result of a call as JSON; raise TooLarge if it has more than `most` bytes."""
    if outcome.content is not None:
        data = render([builtin(block) for block in outcome.content])
    elif outcome.whole is None or len(outcome.whole) > most:
        data = render(outcome.result) if outcome.whole is None else outcome.whole
    elif outcome.content_type == JSON:
        data = render(parse(outcome.whole, limit=most, most_values=MAX_STORED_VALUES))
    else:
        data = render(outcome.whole.decode() if outcome.content_type == TEXT else outcome.result)
    if len(data) > most:
        raise TooLarge(
            "the result is too large",
            why=f"it has {len(data)} bytes, at most {most} are sent",
            next="Ask for less, or raise gateway.max_result_bytes.",
        )
    return data
