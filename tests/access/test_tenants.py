import asyncio

import pytest

from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput, NotFound
from holdfast.core.ids import TenantId, uuid7
from holdfast.engine import Engine

pytestmark = pytest.mark.req("ENG-04")

NAMES = ["a", "7", "acme", "acme-2.example_com", "x" * 63]
NO_NAMES = ["", "Acme", "a b", "-a", ".a", "_a", "x" * 64, "ä", "a\n", "a\0", "\ud800", "a/b", "a'b", "٣"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_tenant_is_found_by_the_name_it_was_made_with(engine: Engine, name: str) -> None:
    made = await engine.tenants.create(name)

    assert await engine.tenants.find(name) == made
    assert await engine.tenants.get(made.id) == made
    assert await engine.tenants.id_of(name) == await engine.tenants.id_of(made.id) == made.id
    assert made.id.version == 7


@pytest.mark.parametrize("name", NO_NAMES)
async def test_what_cannot_be_a_name_is_refused_and_never_found(engine: Engine, name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid name for a tenant"):
        await engine.tenants.create(name)
    with pytest.raises(NotFound, match="does not exist"):
        await engine.tenants.find(name)

    assert [tenant.name for tenant in await engine.tenants.list()] == ["default"]


async def test_tenants_are_listed_by_name(engine: Engine) -> None:
    for name in ("zoo", "acme"):
        await engine.tenants.create(name)

    assert [tenant.name for tenant in await engine.tenants.list()] == ["acme", "default", "zoo"]


async def test_of_many_who_make_the_same_tenant_one_does(engine: Engine) -> None:
    made = await asyncio.gather(*(engine.tenants.create("acme") for _ in range(10)), return_exceptions=True)

    refused = [error for error in made if isinstance(error, HoldfastError)]
    assert len(refused) == 9
    assert {type(error) for error in refused} == {AlreadyExists}
    assert "'acme' already" in str(refused[0])
    assert len(await engine.tenants.list()) == 2


async def test_a_tenant_made_after_it_was_missed_is_found(engine: Engine) -> None:
    with pytest.raises(NotFound):
        await engine.tenants.id_of("acme")
    with pytest.raises(NotFound):
        await engine.tenants.get(TenantId(uuid7()))

    made = await engine.tenants.create("acme")

    assert await engine.tenants.id_of("acme") == made.id
