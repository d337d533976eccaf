"""Nodes that share the limits of a tenant."""

from collections.abc import AsyncIterator

import pytest

from holdfast.engine import Engine
from tests.quotas.nodes import Nodes


@pytest.fixture
async def engine(words_only: Engine) -> Engine:
    """An open engine; no model is needed here."""
    return words_only


@pytest.fixture
async def nodes(engine: Engine) -> AsyncIterator[Nodes]:
    """Nodes on the test's database; what they lease goes back in the end."""
    nodes = Nodes(engine)
    yield nodes
    await nodes.close()
