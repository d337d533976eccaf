"""A conversation to speak in, a second engine beside the first, and another tenant."""

from collections.abc import AsyncIterator

import pytest

from holdfast.conversations import Conversation, Conversations, State, TurnClaims
from holdfast.core.config import Config
from holdfast.engine import Engine, open_engine


@pytest.fixture
def conversations(engine: Engine) -> Conversations:
    """The conversations of the tenant `default`."""
    return engine.conversations


@pytest.fixture
def state(engine: Engine) -> State:
    """The state of the tenant `default`."""
    return engine.state


@pytest.fixture
def turns(engine: Engine) -> TurnClaims:
    """The turns of the tenant `default`."""
    return engine.turns


@pytest.fixture
async def talk(conversations: Conversations) -> Conversation:
    """A conversation of ann's in which nothing was said yet."""
    return await conversations.create(app="shop", user="ann", agent="support", session_id="web-42")


@pytest.fixture
async def document(conversations: Conversations) -> Conversation:
    """A tree that is no conversation."""
    return await conversations.create(document=True)


@pytest.fixture
async def second(engine: Engine, config: Config) -> AsyncIterator[Engine]:
    """An engine of its own on the same database, as another process has it."""
    async with open_engine(config=config) as second:
        yield second


@pytest.fixture
async def acme(engine: Engine) -> Engine:
    """The same engine for another tenant."""
    await engine.tenants.create("acme")
    return engine.tenant("acme")
