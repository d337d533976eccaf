"""Sessions of older MCP clients: whose they are, how long they last, how many there may be."""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest

from holdfast.access.principals import OWNER_SCOPES, USER_SCOPES, Principal
from holdfast.core.errors import DatabaseAway
from holdfast.engine import Engine
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.legacy import sessions as module
from holdfast.gateway.mcp.legacy.call_states import CallStates
from holdfast.gateway.mcp.legacy.client import LegacyClient
from holdfast.gateway.mcp.legacy.questions import Questions
from holdfast.gateway.mcp.legacy.sessions import McpSessions, SessionSweeper, key_of
from holdfast.gateway.mcp.legacy.signals import About, Signals, channel_of
from holdfast.gateway.mcp.legacy.stored_streams import StoredStreams
from holdfast.mcp.protocol import LEGACY, McpError
from holdfast.skills.client import InputRequired
from tests.clock import Clock

CLIENT: dict[str, Any] = {"capabilities": {"roots": {}}, "info": {"name": "old"}}


@pytest.fixture
async def gateway(words_only: Engine) -> Gateway:
    """A gateway in front of nothing: sessions need no tools."""
    return Gateways(words_only).of(await words_only.database.tenant())


@pytest.fixture
async def ann(gateway: Gateway) -> Principal:
    """Somebody with a session."""
    return Principal(await gateway.engine.database.tenant(), "ann", OWNER_SCOPES)


@pytest.fixture
def sessions(gateway: Gateway) -> McpSessions:
    """The sessions of this node."""
    return McpSessions.of(gateway)


@pytest.fixture
async def elsewhere(gateway: Gateway, ann: Principal) -> McpSessions:
    """Those of another, as far as anybody can tell."""
    return McpSessions.of(Gateways(gateway.engine).of(ann.tenant))


async def refuses(sessions: McpSessions, caller: Principal, id: str) -> bool:
    """Whether somebody has no such session."""
    try:
        await sessions.find(caller, id)
    except McpError as error:
        return error.status == HTTPStatus.NOT_FOUND
    return False


@pytest.mark.req("MCP-08")
async def test_a_session_is_found_by_its_user_and_agent_alone(
    gateway: Gateway, sessions: McpSessions, elsewhere: McpSessions, ann: Principal
) -> None:
    await gateway.engine.tenants.create("acme")
    acme = await gateway.engine.tenants.id_of("acme")
    id, session = await sessions.begin(ann, LEGACY[0], CLIENT)
    others = [
        Principal(ann.tenant, "bob", OWNER_SCOPES),
        Principal(ann.tenant, "Ann", OWNER_SCOPES),
        Principal(ann.tenant, "ann", OWNER_SCOPES, "support"),
    ]

    found = await elsewhere.find(Principal(ann.tenant, "ann", USER_SCOPES), id)

    assert found == session
    assert found.capabilities == {"roots": {}}
    assert all([await refuses(elsewhere, other, id) for other in others])
    assert await refuses(McpSessions.of(Gateways(gateway.engine).of(acme)), Principal(acme, "ann", OWNER_SCOPES), id)
    with pytest.raises(McpError):
        await elsewhere.find(ann, id, transport="sse")
    async with gateway.engine.postgres.owner() as owner:
        rows = await owner.all("select key from mcp_session")
    assert [row["key"] for row in rows] == [key_of(id)]


@pytest.mark.req("MCP-08")
async def test_of_ten_thousand_guesses_none_is_a_session(sessions: McpSessions, ann: Principal) -> None:
    id, _ = await sessions.begin(ann, LEGACY[0], CLIENT)
    near = [id[:-1], id + "A", id.swapcase(), id[::-1], f"{id} ", "", "../" + id, id.replace(id[0], "%00", 1)]
    guesses = [*near, *(secrets.token_urlsafe(32) for _ in range(10_000 - len(near)))]

    assert all([await refuses(sessions, ann, guess) for guess in guesses])
    assert not await refuses(sessions, ann, id)


@pytest.mark.req("MCP-08")
async def test_a_session_lasts_while_it_is_used_and_is_swept_afterwards(
    gateway: Gateway, sessions: McpSessions, ann: Principal
) -> None:
    clock, minutes = Clock(gateway.engine), gateway.engine.config.gateway.session_minutes
    used, session = await sessions.begin(ann, LEGACY[0], CLIENT)
    idle, _ = await sessions.begin(ann, LEGACY[0], CLIENT)
    stream = await StoredStreams(gateway).open(session, [1], whole=True)
    assert stream is not None

    await clock.advance(timedelta(minutes=minutes - 1))
    sessions.forget(session)
    await sessions.find(ann, used)  # by a node that has not said for a minute that it is used
    await clock.advance(timedelta(minutes=2))
    sessions.forget(session)
    sweeper = SessionSweeper(gateway.engine.postgres)
    swept = [await sweeper.sweep(), await sweeper.sweep()]

    assert swept == [1, 0]
    assert not await refuses(sessions, ann, used)
    assert await refuses(McpSessions.of(Gateways(gateway.engine).of(ann.tenant)), ann, idle)


@pytest.mark.req("MCP-08")
async def test_a_user_has_so_many_sessions_and_the_one_not_used_for_longest_makes_room(
    gateway: Gateway, sessions: McpSessions, elsewhere: McpSessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    bob, clock = Principal(ann.tenant, "bob", USER_SCOPES), Clock(gateway.engine)
    bobs, _ = await sessions.begin(bob, LEGACY[0], CLIENT)
    begun: list[str] = []
    for _ in range(3):
        await clock.advance(timedelta(seconds=1))
        begun.append((await sessions.begin(ann, LEGACY[0], CLIENT))[0])

    assert [await refuses(elsewhere, ann, id) for id in begun] == [True, False, False]
    assert not await refuses(elsewhere, bob, bobs)


@pytest.mark.req("MCP-08")
async def test_what_a_client_wishes_is_known_on_every_node(
    sessions: McpSessions, elsewhere: McpSessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SUBSCRIPTIONS", 2)
    id, session = await sessions.begin(ann, LEGACY[0], CLIENT)

    wishes = sessions.settings_of(session)
    await wishes.set_level("error")
    for uri in ("a:1", "b:\0", "a:1"):
        await wishes.subscribe(uri)
    with pytest.raises(McpError, match="at most 2"):
        await wishes.subscribe("c:3")
    with pytest.raises(McpError, match="characters"):
        await wishes.subscribe("d:" + "x" * 2000)
    await wishes.unsubscribe("a:1")

    found = await elsewhere.find(ann, id)
    await elsewhere.end(found)
    for wish in (wishes.subscribe("e:5"), wishes.set_level("info")):
        with pytest.raises(McpError, match="no such session"):
            await wish
    assert (found.level, found.subscriptions) == ("error", {"b:\0"})


@pytest.mark.req("MCP-08")
async def test_a_session_that_is_used_often_is_read_once_a_second(
    gateway: Gateway, sessions: McpSessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, _ = await sessions.begin(ann, LEGACY[0], CLIENT)

    async def unread(*_: object) -> None:
        raise AssertionError("the database was asked")

    with monkeypatch.context() as unplugged:
        unplugged.setattr(gateway.engine.database, "one", unread)
        unplugged.setattr(gateway.engine.database, "run", unread)
        found = [await sessions.find(ann, id) for _ in range(100)]

    assert len(found) == 100


@pytest.mark.req("MCP-08")
async def test_a_stream_is_kept_for_a_while_after_its_end_and_no_longer(
    gateway: Gateway, sessions: McpSessions, ann: Principal
) -> None:
    streams, clock = StoredStreams(gateway), Clock(gateway.engine)
    _, session = await sessions.begin(ann, LEGACY[0], CLIENT)
    stream = await streams.open(session, ["a"], whole=True)
    assert stream is not None
    await streams.store(stream, b'{"n":1}')
    await streams.end(stream, b'{"n":2}')
    await streams.end(stream, b'{"n":3}')  # it has ended

    part = await streams.after(session, stream.id, 0)
    late = await streams.after(session, stream.id, 1)
    await clock.advance(timedelta(minutes=6))
    await streams.open(session, ["b"], whole=True)
    gone = await streams.after(session, stream.id, 0)

    assert part is not None
    assert (part.messages, part.over) == ([(1, b'{"n":1}'), (2, b'{"n":2}')], True)
    assert late is not None
    assert late.messages == [(2, b'{"n":2}')]
    assert gone is None
    async with gateway.engine.postgres.owner() as owner:
        assert await owner.value("select count(*) from mcp_event") == 0


@pytest.mark.req("MCP-08")
async def test_of_a_stream_that_tells_too_much_the_beginning_and_the_answer_are_kept(
    gateway: Gateway, sessions: McpSessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.legacy.stored_streams.MOST_BYTES", 30)
    streams = StoredStreams(gateway)
    _, session = await sessions.begin(ann, LEGACY[0], CLIENT)
    stream = await streams.open(session, ["a"], whole=True)
    assert stream is not None

    for number in range(50):
        await streams.store(stream, b'{"told":%d}' % number)
    await streams.end(stream, b'"answer"')
    part = await streams.after(session, stream.id, 0)

    assert part is not None
    assert [number for number, _ in part.messages] == [1, 2, 3, 51]
    assert part.messages[-1][1] == b'"answer"'


@pytest.mark.req("MCP-08", "SAFE-02")
async def test_signals_name_nothing_and_share_a_few_channels(gateway: Gateway) -> None:
    signals, tenant = Signals.of(gateway), await gateway.engine.database.tenant()
    about: tuple[About, ...] = ("session", "calls", "events", "answers")
    channels = {channel_of(tenant, str(number), kind) for number in range(2000) for kind in about}
    ears = {session: asyncio.Event() for session in map(str, range(20))}
    async with AsyncExitStack() as stack, asyncio.timeout(20):
        for session, ear in ears.items():
            await stack.enter_async_context(signals.subscribe(session, "calls", ear.set))
        wake = await stack.enter_async_context(gateway.engine.postgres.listen(*channels))
        for session, ear in ears.items():
            ear.clear()
            await signals.notify(session, *about)
            await ear.wait()
        while not wake.payloads:
            await wake.wait()
        said = {payload for _, payload in wake.payloads}

    assert len(channels) <= 64
    assert said == {""}


@pytest.mark.req("MCP-08")
async def test_a_request_is_cancelled_by_a_row_of_its_own_session(
    gateway: Gateway, sessions: McpSessions, ann: Principal
) -> None:
    states, minute = CallStates(gateway), timedelta(minutes=1)
    (_, session), (_, other) = [await sessions.begin(ann, LEGACY[0], CLIENT) for _ in range(2)]

    await states.cancel(session, "77")

    mine = await states.read(session, ["76", "77"], worked=minute, stream=None)
    theirs = await states.read(other, ["77"], worked=minute, stream=None)
    assert (mine.alive, mine.cancelled, mine.resumed) == (True, ["77"], False)
    assert theirs.cancelled == []


@pytest.mark.req("MCP-08")
async def test_an_old_cancellation_does_not_end_a_request_that_begins_now(
    gateway: Gateway, sessions: McpSessions, ann: Principal
) -> None:
    states = CallStates(gateway)
    _, session = await sessions.begin(ann, LEGACY[0], CLIENT)
    await states.cancel(session, "1")
    await Clock(gateway.engine).advance(timedelta(minutes=5))

    fresh = await states.read(session, ["1"], worked=timedelta(seconds=1), stream=None)
    long = await states.read(session, ["1"], worked=timedelta(minutes=10), stream=None)

    assert (fresh.cancelled, long.cancelled) == ([], ["1"])


@pytest.mark.req("MCP-08")
async def test_a_new_cancellation_replaces_the_oldest_of_too_many(
    gateway: Gateway, sessions: McpSessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.legacy.call_states.MOST", 2)
    states, clock = CallStates(gateway), Clock(gateway.engine)
    (_, session), (_, other) = [await sessions.begin(ann, LEGACY[0], CLIENT) for _ in range(2)]
    await states.cancel(other, "0")

    for request in ("1", "2", "3"):
        await states.cancel(session, request)
        await clock.advance(timedelta(seconds=1))

    mine = await states.read(session, ["1", "2", "3"], worked=timedelta(minutes=1), stream=None)
    theirs = await states.read(other, ["0"], worked=timedelta(minutes=1), stream=None)
    assert (sorted(mine.cancelled), theirs.cancelled) == (["2", "3"], ["0"])


@pytest.mark.req("MCP-01")
async def test_a_call_that_cannot_tell_its_client_that_it_ended_leaves_nothing_behind(
    gateway: Gateway, sessions: McpSessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.gateway.mcp.legacy.client.MOMENT", 0)
    _, session = await sessions.begin(ann, LEGACY[0], CLIENT)
    questions, told = Questions(gateway), list[Mapping[str, Any]]()
    failures = [DatabaseAway("the database is away"), asyncio.CancelledError()]

    async def tell(message: Mapping[str, Any]) -> None:
        told.append(message)
        if "id" not in message:
            raise failures[-1]

    async def stay() -> None:
        pass

    while failures:
        client = LegacyClient(
            tell,
            lambda ids: questions.ask(session, ids),
            stay,
            {},
            capabilities=session.capabilities,
            limit=1,
            level="info",
        )
        with pytest.raises(InputRequired):
            await client.roots()
        with suppress(asyncio.CancelledError):
            await client.close()
        failures.pop()

    assert [message["method"] for message in told] == ["roots/list", "notifications/cancelled"] * 2
    async with gateway.engine.postgres.owner() as owner:
        assert await owner.value("select count(*) from mcp_question") == 0
