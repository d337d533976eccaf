"""The registry of a tenant, and of another one."""

import pytest

from holdfast.engine import Engine
from holdfast.skills.history import ChangeHistory
from holdfast.skills.skills import Skills
from holdfast.skills.tools import Tools


@pytest.fixture
def tools(words_only: Engine) -> Tools:
    """The tools of the tenant `default`."""
    return Tools(words_only.database)


@pytest.fixture
def skills(words_only: Engine, tools: Tools) -> Skills:
    """The skills of the tenant `default`."""
    return Skills(words_only.database, tools)


@pytest.fixture
def history(words_only: Engine) -> ChangeHistory:
    """What was changed in the registry of the tenant `default`."""
    return ChangeHistory(words_only.database)


@pytest.fixture
async def acme(words_only: Engine) -> Engine:
    """Another tenant."""
    await words_only.tenants.create("acme")
    return words_only.tenant("acme")
