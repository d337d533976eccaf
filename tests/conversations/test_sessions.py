import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from holdfast.conversations.sessions import ActiveSession, Sessions
from holdfast.core.config import Config
from holdfast.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from holdfast.core.names import MAX_NAME_BYTES
from holdfast.engine import Engine, open_engine
from holdfast.memory import session
from holdfast.postgres.database import Transaction
from tests.clock import Clock

pytestmark = pytest.mark.req("STM-03")

DEVICES = 24
NAMES = ["web-42", " ", "ünï 😀", "nul\0nul", "half \ud83d", "quote ' \" \\ $1", "x" * MAX_NAME_BYTES]


@pytest.fixture
def sessions(engine: Engine) -> Sessions:
    """The sessions of the tenant `default`."""
    return engine.sessions


async def converse(engine: Engine, session_id: str, user: str | None) -> UUID:
    """The id of a conversation that has begun, with or without a user."""
    return (await engine.conversations.create(session_id=session_id, user=user)).id


async def is_ended(engine: Engine, conversation: UUID) -> bool:
    return (await engine.conversations.get(conversation)).ended_at is not None


async def active_id(sessions: Sessions, user: str = "ann", agent: str = "support") -> str | None:
    found = await sessions.active(user=user, agent=agent)
    return found and found.session_id


async def test_nobody_is_in_a_session_before_they_start_one_and_asking_stores_nothing(
    engine: Engine, sessions: Sessions
) -> None:
    assert await sessions.active(user="ann", agent="support") is None

    assert await engine.database.value("select count(*) from identity where tenant_id = $1") == 0


async def test_the_session_that_was_activated_last_is_the_active_one(sessions: Sessions, clock: Clock) -> None:
    first = await sessions.activate(user="ann", agent="support", session_id="one")
    await clock.advance(timedelta(hours=1))
    second = await sessions.activate(user="ann", agent="support", session_id="two")

    assert await sessions.active(user="ann", agent="support") == second
    assert second == ActiveSession("two", "ann", "support", second.last_active_at, first.created_at)
    assert second.last_active_at - first.last_active_at >= timedelta(hours=1)


async def test_each_agent_and_each_user_has_a_session_of_their_own(sessions: Sessions) -> None:
    await sessions.activate(user="ann", agent="support", session_id="a")
    await sessions.activate(user="ann", agent="sales", session_id="b")
    await sessions.activate(user="bob", agent="support", session_id="c")

    assert await active_id(sessions) == "a"
    assert await active_id(sessions, agent="sales") == "b"
    assert await active_id(sessions, user="bob") == "c"


@pytest.mark.parametrize("name", NAMES)
async def test_any_string_names_a_session_and_an_agent(sessions: Sessions, name: str) -> None:
    await sessions.activate(user=name, agent=name, session_id=name)

    found = await sessions.active(user=name, agent=name)

    assert found is not None
    assert (found.session_id, found.user, found.agent) == (name, name, name)
    await sessions.end(name)
    assert await sessions.active(user=name, agent=name) is None


@pytest.mark.req("ENG-08")
async def test_a_name_that_cannot_be_one_is_refused(sessions: Sessions) -> None:
    long = "ü" * 1001

    for session_id, agent in (("", "support"), ("one", "")):
        with pytest.raises(InvalidInput, match="is empty"):
            await sessions.activate(user="ann", agent=agent, session_id=session_id)
    for session_id, agent in ((long, "support"), ("one", long)):
        with pytest.raises(TooLarge, match=f"2002 bytes, the limit is {MAX_NAME_BYTES}"):
            await sessions.activate(user="ann", agent=agent, session_id=session_id)
    with pytest.raises(InvalidInput):
        await sessions.end("")

    assert await active_id(sessions) is None


@pytest.mark.req("STM-04")
@pytest.mark.parametrize(
    ("active", "instead_of", "in_force"),
    [
        (None, None, "new"),
        (None, "old", "new"),
        ("old", "old", "new"),
        ("old", None, "old"),
        ("old", "older", "old"),
        ("new", None, "new"),
    ],
)
async def test_a_session_yields_to_one_that_it_was_not_to_replace(
    sessions: Sessions, clock: Clock, active: str | None, instead_of: str | None, in_force: str
) -> None:
    before = active and await sessions.activate(user="ann", agent="support", session_id=active)
    await clock.advance(timedelta(hours=1))

    after = await sessions.activate(user="ann", agent="support", session_id="new", instead_of=instead_of)

    assert after.session_id == in_force
    assert after == await sessions.active(user="ann", agent="support")
    if active not in (None, instead_of):
        assert after == before


@pytest.mark.req("STM-04")
async def test_of_many_devices_that_start_at_once_one_wins_and_all_agree(config: Config) -> None:
    database = config.database.model_copy(update={"pool_size": 2 * DEVICES})
    async with open_engine(config=config.model_copy(update={"database": database})) as engine:
        await engine.identities.id("user", "ann")  # or each would need a second connection for it
        ready = asyncio.Barrier(DEVICES)

        async def start(device: int) -> str:
            async with engine.transaction() as tx:
                await tx.now()
                await ready.wait()  # every transaction runs before any of them writes
                active = await engine.sessions.activate(
                    user="ann", agent="support", session_id=f"of {device}", instead_of=None, tx=tx
                )
            return active.session_id

        async with asyncio.timeout(30):
            agreed = await asyncio.gather(*(start(device) for device in range(DEVICES)))

        assert set(agreed) == {await active_id(engine.sessions)}


async def test_a_session_takes_effect_with_its_transaction_or_not_at_all(engine: Engine, sessions: Sessions) -> None:
    await sessions.activate(user="ann", agent="support", session_id="one")

    async def fail(tx: Transaction) -> None:
        await sessions.activate(user="ann", agent="support", session_id="two", tx=tx)
        await sessions.end("two", tx=tx)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await engine.atomically(fail)

    assert await active_id(sessions) == "one"


@pytest.mark.req("SAFE-02")
async def test_another_users_session_id_is_answered_as_an_unknown_one(engine: Engine, sessions: Sessions) -> None:
    conversation = await converse(engine, "bobs", "bob")
    await sessions.activate(user="bob", agent="support", session_id="bobs")

    with pytest.raises(NotFound) as ended:
        await sessions.end("bobs", user="ann")
    with pytest.raises(NotFound) as unknown:
        await sessions.end("none", user="ann")
    active = await sessions.activate(user="ann", agent="support", session_id="bobs")
    own = await engine.conversations.ensure("bobs", user="ann", agent="support")
    again = await sessions.activate(user="ann", agent="support", session_id="other", instead_of="bobs")
    await sessions.activate(user="ann", agent="support", session_id="bobs")
    await sessions.end("bobs", user="ann")

    assert str(ended.value) == str(unknown.value).replace("none", "bobs")
    assert (active.session_id, own.session_id, again.session_id) == ("bobs", "bobs", "other")
    assert own.id != conversation
    assert await is_ended(engine, own.id)
    assert (await active_id(sessions), await active_id(sessions, "bob")) == (None, "bobs")
    assert not await is_ended(engine, conversation)


@pytest.mark.req("SAFE-02")
async def test_a_session_that_several_users_have_is_a_conflict_for_who_names_none(
    engine: Engine, sessions: Sessions
) -> None:
    first, *_ = [await converse(engine, "one", user) for user in ("ann", "bob", "cid")]
    named = await engine.conversations.find(session_id="one")
    await engine.conversations.remove(first)

    with pytest.raises(Conflict, match="several users"):
        await engine.conversations.find(session_id="one")
    with pytest.raises(Conflict, match="several users"):
        await sessions.end("one")
    with pytest.raises(Conflict, match="several users"):
        await engine.memory.list(session("one"))
    await engine.memory.remember(session("one", user="bob"), "bob likes tea")
    theirs = await engine.conversations.find(session_id="one", user="cid")
    assert theirs is not None
    await engine.conversations.remove(theirs.id)

    assert named is not None
    assert named.id == first
    assert [each.content for each in await engine.memory.list(session("one"))] == ["bob likes tea"]


@pytest.mark.req("SAFE-02")
async def test_a_user_cannot_make_nobodys_session_their_own_by_naming_it(engine: Engine, sessions: Sessions) -> None:
    conversation = await converse(engine, "one", None)

    active = await sessions.activate(user="bob", agent="support", session_id="one", adopts=False)
    own = await engine.conversations.ensure("one", user="bob", adopts=False)

    assert active.session_id == own.session_id == "one" != (await engine.conversations.get(conversation)).user
    assert own.id != conversation


@pytest.mark.req("STM-05")
async def test_nobodys_session_becomes_the_users_who_was_in_it_before(engine: Engine, sessions: Sessions) -> None:
    await sessions.activate(user="ann", agent="support", session_id="one", adopts=False)
    conversation = await converse(engine, "one", None)  # as a client does that knows no users

    other = await engine.conversations.ensure("one", user="bob", adopts=False)
    own = await engine.conversations.ensure("one", user="ann", adopts=False)

    assert (own.id, own.user) == (conversation, "ann")
    assert other.id != conversation


@pytest.mark.req("SAFE-02")
async def test_who_makes_a_session_active_that_another_is_in_does_not_adopt_it(
    engine: Engine, sessions: Sessions
) -> None:
    for user in ("ann", "bob"):
        await sessions.activate(user=user, agent="support", session_id="one", adopts=False)
    conversation = await converse(engine, "one", None)

    talks = [await engine.conversations.ensure("one", user=user, adopts=False) for user in ("ann", "bob")]

    assert conversation not in {talk.id for talk in talks}


async def test_a_session_may_be_ones_own_nobodys_or_not_a_conversation_yet(engine: Engine, sessions: Sessions) -> None:
    await converse(engine, "own", "ann")
    await converse(engine, "nobody's", None)

    for session_id in ("own", "nobody's", str(uuid4())):
        active = await sessions.activate(user="ann", agent="support", session_id=session_id)

        assert active.session_id == session_id


async def test_a_session_with_another_agent_is_refused(engine: Engine, sessions: Sessions) -> None:
    await engine.conversations.create(session_id="sold", user="ann", agent="sales")

    with pytest.raises(NotFound):
        await sessions.activate(user="ann", agent="support", session_id="sold")
    await sessions.activate(user="ann", agent="sales", session_id="sold")

    assert (await active_id(sessions), await active_id(sessions, agent="sales")) == (None, "sold")


@pytest.mark.req("SAFE-02")
async def test_a_session_of_another_tenant_is_neither_seen_nor_ended(engine: Engine, sessions: Sessions) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme").sessions
    conversation = await converse(engine, "one", "bob")
    await sessions.activate(user="bob", agent="support", session_id="one")

    seen = await active_id(acme, "bob")
    with pytest.raises(NotFound):
        await acme.end("one")
    await acme.activate(user="ann", agent="support", session_id="one")

    assert seen is None
    assert await active_id(sessions, "bob") == "one"
    assert not await is_ended(engine, conversation)


@pytest.mark.parametrize("user", [None, "ann"])
async def test_who_ends_a_session_ends_its_conversation_and_its_user_is_in_it_no_more(
    engine: Engine, sessions: Sessions, user: str | None
) -> None:
    await sessions.activate(user="bob", agent="support", session_id="one")  # before it was ann's
    conversation = await converse(engine, "one", "ann")
    await sessions.activate(user="ann", agent="support", session_id="one")
    await sessions.activate(user="ann", agent="sales", session_id="other")

    await sessions.end("one", user=user)

    assert await is_ended(engine, conversation)
    assert (await active_id(sessions), await active_id(sessions, "bob")) == (None, "one")  # which is bob's own
    assert await active_id(sessions, agent="sales") == "other"


async def test_a_session_ends_when_it_was_first_ended(engine: Engine, sessions: Sessions, clock: Clock) -> None:
    conversation = await converse(engine, "one", "ann")
    await sessions.end("one")
    first = await engine.conversations.get(conversation)
    await clock.advance(timedelta(hours=1))

    await sessions.end("one")

    assert (await engine.conversations.get(conversation)).ended_at == first.ended_at is not None


async def test_a_session_without_a_conversation_ends_for_the_user_who_ends_it(sessions: Sessions) -> None:
    await sessions.activate(user="ann", agent="support", session_id="one")
    await sessions.activate(user="bob", agent="support", session_id="one")

    await sessions.end("one", user="ann")

    assert (await active_id(sessions), await active_id(sessions, "bob")) == (None, "one")
    with pytest.raises(NotFound):
        await sessions.end("one", user="ann")


async def test_a_user_leaves_nobodys_session_and_does_not_end_it_for_others(engine: Engine, sessions: Sessions) -> None:
    conversation = await converse(engine, "one", None)
    for user in ("ann", "bob"):
        await sessions.activate(user=user, agent="support", session_id="one")

    await sessions.end("one", user="bob")

    with pytest.raises(NotFound):
        await sessions.end("one", user="bob")
    assert await sessions.active(user="bob", agent="support") is None
    assert await sessions.active(user="ann", agent="support") is not None
    assert not await is_ended(engine, conversation)
