import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from holdfast.access import keys as keys_module
from holdfast.access.keys import LINK_LIFETIME, SESSION_LIFETIME, Keys, NewKey
from holdfast.access.principals import OWNER_SCOPES, SCOPES, Principal
from holdfast.core.errors import Forbidden, HoldfastError, InvalidInput, NotFound, Unauthenticated
from holdfast.core.ids import TenantId, uuid7
from holdfast.engine import Engine
from tests.clock import Clock

pytestmark = pytest.mark.req("SAFE-03")

READ = frozenset({"read"})


@pytest.fixture
async def tenant(engine: Engine) -> TenantId:
    """The tenant that keys are made for."""
    return (await engine.tenants.create("acme")).id


@pytest.fixture
async def made(engine: Engine, tenant: TenantId) -> NewKey:
    """A key of ann's."""
    return await engine.keys.create(tenant, "ann", label="laptop")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets this many seconds pass for what is remembered."""
    passed = 0.0
    real = keys_module.monotonic

    def move(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    monkeypatch.setattr(keys_module, "monotonic", lambda: real() + passed)
    return move


async def test_a_key_says_who_has_it_and_what_they_may(engine: Engine, tenant: TenantId, made: NewKey) -> None:
    narrow = await engine.keys.create(tenant, "bob", scopes=READ)

    assert await engine.keys.authenticate(made.text) == Principal(tenant, "ann", OWNER_SCOPES)
    assert await engine.keys.authenticate(narrow.text) == Principal(tenant, "bob", READ)


async def test_a_key_is_shown_once_and_its_text_is_nowhere_in_the_database(
    engine: Engine, tenant: TenantId, made: NewKey
) -> None:
    link = await engine.keys.create_link(tenant, "ann")
    session = await engine.keys.exchange_link(link)
    async with engine.postgres.owner() as owner:
        tables = await owner.all("select oid::regclass::text as name from pg_class where relkind = 'r' and oid > 16383")
        dump = [row[0] for table in tables for row in await owner.all(f"select t::text from {table['name']} t")]

    everything = "\n".join(dump)
    assert made.key.principal in everything
    for text in (made.text, link, session):
        secret = text.removeprefix("hf_")
        assert secret not in everything
        assert secret.encode().hex() not in everything
    assert made.text not in repr(await engine.keys.list(tenant))


async def test_keys_are_listed_newest_first_and_the_revoked_ones_too(
    engine: Engine, tenant: TenantId, made: NewKey
) -> None:
    second = await engine.keys.create(tenant, "bob", scopes=READ, lifetime=timedelta(days=1))
    revoked = await engine.keys.revoke(tenant, made.key.id)
    await engine.keys.create_link(tenant, "ann")

    assert await engine.keys.list(tenant) == [second.key, revoked]
    assert revoked.revoked_at is not None
    assert second.key.expires_at == second.key.created_at + timedelta(days=1)


@pytest.mark.req("SAFE-03")
async def test_a_browser_that_is_signed_in_is_listed_and_can_be_signed_out(engine: Engine, tenant: TenantId) -> None:
    session = await engine.keys.exchange_link(await engine.keys.create_link(tenant, "ann"))
    (listed,) = await engine.keys.list(tenant)

    await engine.keys.revoke(tenant, listed.id)

    assert (listed.kind, listed.label) == ("session", "browser session")
    assert await engine.keys.list(tenant) == []
    with pytest.raises(Unauthenticated):
        await engine.keys.authenticate(session)


async def test_links_and_sessions_that_have_expired_are_forgotten_and_keys_are_not(
    engine: Engine, tenant: TenantId, clock: Clock
) -> None:
    await engine.keys.create(tenant, "ann", lifetime=timedelta(days=1))
    await engine.keys.exchange_link(await engine.keys.create_link(tenant, "ann"))
    await clock.advance(timedelta(days=60))

    await engine.keys.create_link(tenant, "ann")

    kinds = await engine.postgres.system.all("select kind from api_key order by kind")
    assert [row["kind"] for row in kinds] == ["key", "link"]


@pytest.mark.parametrize("text", ["", "hf_", "hf_wrong", "hf_\0", "\ud800", "x" * 100_000])
async def test_what_is_no_key_is_refused(engine: Engine, made: NewKey, text: str) -> None:
    with pytest.raises(Unauthenticated, match="the key is invalid"):
        await engine.keys.authenticate(text)


async def test_a_key_ends_with_its_lifetime(
    engine: Engine, tenant: TenantId, clock: Clock, later: Callable[[float], None]
) -> None:
    short = await engine.keys.create(tenant, "ann", lifetime=timedelta(hours=1))
    await clock.advance(timedelta(minutes=59))
    later(1)
    await engine.keys.authenticate(short.text)

    await clock.advance(timedelta(minutes=2))
    later(1)

    with pytest.raises(Unauthenticated):
        await engine.keys.authenticate(short.text)


async def test_a_revoked_key_is_refused_at_once_here_and_within_a_second_elsewhere(
    engine: Engine, tenant: TenantId, made: NewKey, later: Callable[[float], None]
) -> None:
    elsewhere = Keys(engine.postgres, engine.secret)
    await engine.keys.authenticate(made.text)
    await elsewhere.authenticate(made.text)

    first = await engine.keys.revoke(tenant, made.key.id)
    with pytest.raises(Unauthenticated):
        await engine.keys.authenticate(made.text)
    later(0.99)
    with pytest.raises(Unauthenticated):
        await elsewhere.authenticate(made.text)

    assert (await engine.keys.revoke(tenant, made.key.id)).revoked_at == first.revoked_at


@pytest.mark.req("SAFE-02")
async def test_a_key_of_another_tenant_cannot_be_revoked_or_seen(engine: Engine, made: NewKey) -> None:
    other = (await engine.tenants.create("other")).id

    with pytest.raises(NotFound):
        await engine.keys.revoke(other, made.key.id)

    assert await engine.keys.list(other) == []
    assert (await engine.keys.authenticate(made.text)).user == "ann"


async def test_a_key_made_under_another_secret_is_not_recognised_but_counted(
    engine: Engine, tenant: TenantId, made: NewKey
) -> None:
    after = Keys(engine.postgres, b"another secret")
    own = await after.create(tenant, "ann")

    with pytest.raises(Unauthenticated):
        await after.authenticate(made.text)
    assert await after.count_of_other_secrets() == 1
    assert await engine.keys.count_of_other_secrets() == 1
    assert [part.state for part in await engine.parts() if part.name == "keys"] == ["reduced"]
    await engine.keys.revoke(tenant, own.key.id)
    assert await engine.keys.count_of_other_secrets() == 0


async def test_a_link_becomes_a_session_once_however_many_follow_it(engine: Engine, tenant: TenantId) -> None:
    link = await engine.keys.create_link(tenant, "ann")

    followed = await asyncio.gather(*(engine.keys.exchange_link(link) for _ in range(10)), return_exceptions=True)

    sessions = [text for text in followed if isinstance(text, str)]
    assert len(sessions) == 1
    assert {type(error) for error in followed if not isinstance(error, str)} == {Unauthenticated}
    assert await engine.keys.authenticate(sessions[0]) == Principal(tenant, "ann", OWNER_SCOPES)


async def test_a_link_is_no_key_and_a_key_no_link(engine: Engine, tenant: TenantId, made: NewKey) -> None:
    link = await engine.keys.create_link(tenant, "ann")

    with pytest.raises(Unauthenticated):
        await engine.keys.authenticate(link)
    with pytest.raises(Unauthenticated):
        await engine.keys.exchange_link(made.text)

    assert await engine.keys.exchange_link(link)


async def test_links_and_sessions_end_by_themselves(
    engine: Engine, tenant: TenantId, clock: Clock, later: Callable[[float], None]
) -> None:
    late, link = await engine.keys.create_link(tenant, "ann"), await engine.keys.create_link(tenant, "ann")
    session = await engine.keys.exchange_link(link)

    await clock.advance(LINK_LIFETIME)
    with pytest.raises(Unauthenticated, match="the link is invalid"):
        await engine.keys.exchange_link(late)
    await engine.keys.authenticate(session)
    await clock.advance(SESSION_LIFETIME)
    later(1)

    with pytest.raises(Unauthenticated):
        await engine.keys.authenticate(session)


async def test_only_a_key_ends_access_without_one_and_for_good(
    engine: Engine, tenant: TenantId, later: Callable[[float], None]
) -> None:
    await engine.keys.exchange_link(await engine.keys.create_link(tenant, "ann"))
    before = await engine.keys.any_exists()
    key = await Keys(engine.postgres, engine.secret).create(tenant, "ann")
    later(0.99)

    assert not before
    assert await engine.keys.any_exists()
    await engine.keys.revoke(tenant, key.key.id)
    later(1)
    assert await engine.keys.any_exists()


@pytest.mark.parametrize(
    ("principal", "options"),
    [
        ("", {}),
        ("x" * 256, {}),
        ("a\0b", {}),
        ("a\ud800b", {}),
        ("ann", {"label": "\0"}),
        ("ann", {"scopes": frozenset[str]()}),
        ("ann", {"scopes": frozenset({"read", "fly"})}),
        ("ann", {"lifetime": timedelta()}),
        ("ann", {"lifetime": timedelta(days=-1)}),
        ("ann", {"lifetime": timedelta.max}),
        ("ann", {"agent": ""}),
        ("ann", {"agent": "x" * 256}),
        ("ann", {"agent": "a\0b"}),
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(
    engine: Engine, tenant: TenantId, principal: str, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        await engine.keys.create(tenant, principal, **options)  # pyright: ignore[reportArgumentType]

    assert await engine.keys.list(tenant) == []


async def test_a_key_for_nobodys_tenant_is_not_made(engine: Engine) -> None:
    with pytest.raises(HoldfastError):
        await engine.keys.create(TenantId(uuid7()), "ann")

    assert not await engine.keys.any_exists()


async def test_what_is_remembered_of_keys_stays_bounded(
    engine: Engine, tenant: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "MAX_CACHED_KEYS", 3)
    made = [await engine.keys.create(tenant, f"user {number}") for number in range(6)]

    for new in made:
        await engine.keys.authenticate(new.text)

    assert len(engine.keys._known) == 3  # pyright: ignore[reportPrivateUsage]


def test_a_principal_may_do_what_its_scopes_say_and_no_more() -> None:
    principal = Principal(TenantId(uuid7()), "ann", frozenset({"read", "act-as"}))
    operator = Principal(principal.tenant, "root", frozenset({"operator"}))
    other = TenantId(uuid7())

    principal.require("read")
    assert operator.in_tenant(other) == Principal(other, "root", operator.scopes)
    for refused in (
        lambda: principal.require("write"),
        lambda: principal.require("admin"),
        lambda: principal.in_tenant(other),
        lambda: operator.acting_as("ann"),
        lambda: operator.require("read"),
    ):
        with pytest.raises(Forbidden, match=r"the scope .* is required"):
            refused()


def test_who_acts_as_a_user_may_no_more_than_a_user() -> None:
    principal = Principal(TenantId(uuid7()), "shop", SCOPES)

    acting = principal.acting_as("bob")

    assert acting == Principal(principal.tenant, "bob", frozenset({"read", "write"}), vouched=True)
    for refused in (
        lambda: acting.require("admin"),
        lambda: acting.acting_as("ann"),
        lambda: acting.in_tenant(TenantId(uuid7())),
    ):
        with pytest.raises(Forbidden, match=r"the scope .* is required"):
            refused()
    assert Principal(principal.tenant, "shop", frozenset({"read", "act-as"})).acting_as("bob").scopes == {"read"}


async def test_who_became_owner_stays_owner(engine: Engine, tenant: TenantId) -> None:
    role = "select role from principal where tenant_id = $1 and name = 'ann'"
    database = engine.tenant(tenant).database
    seen: list[str] = []

    for scopes in (READ, OWNER_SCOPES, READ):
        await engine.keys.create(tenant, "ann", scopes=scopes)
        seen.append(await database.value(role))

    assert seen == ["member", "owner", "owner"]
    assert await engine.database.value(role) is None


@pytest.mark.req("MCP-07")
async def test_a_key_can_speak_for_an_agent(engine: Engine, tenant: TenantId) -> None:
    made = await engine.keys.create(tenant, "ann", agent="support")

    found = await engine.keys.authenticate(made.text)

    assert found == Principal(tenant, "ann", frozenset({"read", "write"}), "support")
    assert await engine.keys.list(tenant) == [made.key]
    assert (await engine.keys.revoke(tenant, made.key.id)).agent == "support"


@pytest.mark.req("MCP-07")
@pytest.mark.parametrize("scope", ["admin", "act-as", "operator"])
async def test_a_key_that_speaks_for_an_agent_never_administers(engine: Engine, tenant: TenantId, scope: str) -> None:
    with pytest.raises(InvalidInput, match="cannot have administrative scopes"):
        await engine.keys.create(tenant, "ann", agent="support", scopes=frozenset({"read", scope}))

    assert await engine.keys.list(tenant) == []


def test_who_acts_as_a_user_still_speaks_for_the_agent() -> None:
    caller = Principal(TenantId(uuid7()), "shop", frozenset({"read", "act-as"}), "support")

    assert caller.acting_as("ann") == Principal(caller.tenant, "ann", READ, "support", vouched=True)
