"""A table of tenants' rows, three tenants, and pools of any size."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from holdfast.engine import Engine
from holdfast.postgres.database import Database, Postgres
from tests.postgres.backends import Backends

ITEM = """
create table public.item (tenant_id uuid not null, id int not null, value jsonb, primary key (tenant_id, id));
call holdfast.hold_to_tenant('public.item');
"""


@pytest.fixture
async def items(engine: Engine) -> None:
    """The table `item`: a number and a value, held to its tenants."""
    async with engine.postgres.owner() as owner:
        await owner.script(ITEM)


@pytest.fixture
def database(engine: Engine, items: None) -> Database:
    """The statements of the tenant `default`, in a database that has items."""
    return engine.database


@pytest.fixture
async def three(engine: Engine, items: None) -> list[Database]:
    """The statements of three tenants."""
    tenants = [await engine.tenants.create(name) for name in ("ann", "bob", "cid")]
    return [engine.postgres.tenant(tenant.id) for tenant in tenants]


@pytest.fixture
async def backends(engine: Engine) -> AsyncIterator[Backends]:
    """What the server knows of its connections, seen from one more."""
    async with engine.postgres.owner() as owner:
        yield Backends(owner)


@pytest.fixture
async def open_postgres(engine: Engine) -> AsyncIterator[Callable[..., Postgres]]:
    """Opens the test's database once more, with other options."""
    async with AsyncExitStack() as stack:

        def opened(url: str | None = None, **changes: Any) -> Postgres:
            options = replace(engine.place.options, **changes)
            postgres = Postgres(url or engine.place.owner_url, options, owner_url=engine.place.owner_url)
            stack.push_async_callback(postgres.close)
            return postgres

        yield opened
