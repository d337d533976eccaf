"""Questions of other MCP servers: an answer is used only for the question that the client saw."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from holdfast.access.principals import USER_SCOPES, Principal
from holdfast.core.ids import TenantId
from holdfast.gateway.mcp.legacy.client import LegacyClient
from holdfast.gateway.mcp.legacy.questions import Answers
from holdfast.gateway.mcp.modern_client import ModernClient
from holdfast.gateway.mcp.request_state import Origin, RequestState, RequestStates, answers_of
from holdfast.mcp.inputs import Forwarded, Reply
from holdfast.postgres.database import Database
from holdfast.skills.client import InputRequired

pytestmark = pytest.mark.req("MCP-05", "MCP-08")

NOW = datetime(2026, 8, 1, tzinfo=UTC)
ORIGIN = Origin(Principal(TenantId(UUID(int=1)), "ann", USER_SCOPES, None), "tools/call", {"name": "crm_delete"})
STATES = RequestStates(b"a secret", lifetime=timedelta(minutes=15))
HARMLESS = Forwarded("elicitation/create", {"message": "Show the order?", "requestedSchema": {"type": "object"}})
SERIOUS = Forwarded("elicitation/create", {"message": "Delete the order?", "requestedSchema": {"type": "object"}})
YES: Mapping[str, Mapping[str, Any]] = {"input": {"action": "accept", "content": {}}}


async def _ignore(_: str, __: Mapping[str, Any]) -> None:
    """Take no notifications."""


def modern(state: RequestState | None) -> ModernClient:
    """A modern client that answers yes, if it was asked."""
    answers = answers_of({} if state is None else YES, state)
    return ModernClient(_ignore, cast(Database, None), answers, state, capabilities={"elicitation": {}})


async def asked_for(request: Forwarded, state: RequestState | None = None) -> RequestState:
    """The state of a client that was asked something."""
    client = modern(state)
    with pytest.raises(InputRequired) as waiting:
        await client.inputs({"input": request})
    sealed = STATES.seal(ORIGIN, waiting.value.requests, client.used, now=NOW, digests=client.digests)
    return STATES.open(sealed, ORIGIN, now=NOW)


async def test_an_answer_is_used_for_the_question_that_was_asked() -> None:
    state = await asked_for(HARMLESS)

    assert await modern(state).inputs({"input": HARMLESS}) == {"input": Reply(YES["input"])}


async def test_an_answer_is_not_used_for_another_question_of_the_same_name() -> None:
    state = await asked_for(SERIOUS, await asked_for(HARMLESS))

    assert await modern(state).inputs({"input": SERIOUS}) == {"input": Reply(YES["input"])}


async def test_a_client_in_a_session_is_asked_again_if_the_question_is_another_one() -> None:
    sent: list[str] = []

    class Yes:
        """Answers yes to all questions."""

        def __init__(self, ids: Sequence[str]) -> None:
            self._ids = ids

        async def wait(self, _: float) -> Mapping[str, Any]:
            """Answer at once."""
            await asyncio.sleep(0)
            return {id: {"result": YES["input"]} for id in self._ids}

    @asynccontextmanager
    async def expect(ids: Sequence[str]) -> AsyncGenerator[Answers]:
        yield cast(Answers, Yes(ids))

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message["params"]["message"])

    async def detach() -> None: ...

    client = LegacyClient(send, expect, detach, {}, capabilities={"elicitation": {}}, limit=5, level="info")
    for question in (HARMLESS, HARMLESS, SERIOUS):
        assert await client.inputs({"input": question}) == {"input": Reply(YES["input"])}

    assert sent == ["Show the order?", "Delete the order?"]
