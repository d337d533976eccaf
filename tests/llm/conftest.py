"""A server to ask, and callers that ask it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from holdfast.core.settings import LlmSettings
from holdfast.llm import Caller, Model
from tests.llm.wires import Wire

OpenCaller = Callable[..., Awaitable[Caller]]


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    """A server that answers as it is told."""
    wire = Wire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def open_caller() -> AsyncIterator[OpenCaller]:
    """Opens callers, with settings as keywords; retries do not keep a test waiting."""
    async with AsyncExitStack() as stack:

        async def open_caller(*models: Model, **settings: Any) -> Caller:
            return await stack.enter_async_context(Caller(LlmSettings(**settings), models=models))

        yield open_caller


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come soon."""
    monkeypatch.setattr("holdfast.llm.caller.FIRST_PAUSE", 0.01)
