"""The faults of ADK's own SQL service, none of which ours has."""

import asyncio
import math
from typing import Any

import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai.types import Content, FunctionCall, Part

from holdfast.adapters.adk import PostgresSessionService
from holdfast.core.errors import HoldfastError
from holdfast.engine import Engine
from tests.adapters.adk_events import changed, said

pytestmark = pytest.mark.req("ADK-06")

ANN: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}


@pytest.fixture
def service(engine: Engine) -> PostgresSessionService:
    return PostgresSessionService(engine)


@pytest.fixture
def services(engine: Engine, another_engine: Engine) -> list[PostgresSessionService]:
    """Two services with an engine each, as two processes have them."""
    return [PostgresSessionService(engine), PostgresSessionService(another_engine)]


async def read(service: PostgresSessionService, id: str, **asked: Any) -> Session:
    found = await service.get_session(**ANN, session_id=id, config=GetSessionConfig(**asked))
    assert found is not None
    return found


def texts(session: Session) -> list[str | None]:
    return [part.text for event in session.events if event.content for part in event.content.parts or []]


@pytest.mark.parametrize("times", [[7.0] * 20, [float(20 - n) for n in range(20)]], ids=["equal", "backward"])
async def test_events_keep_their_order_whatever_their_timestamps(
    service: PostgresSessionService, times: list[float]
) -> None:
    session = await service.create_session(**ANN)
    for n, timestamp in enumerate(times):
        await service.append_event(session, said(str(n), timestamp=timestamp))

    got = await read(service, session.id)

    assert texts(got) == [str(n) for n in range(20)]
    assert texts(await read(service, session.id, num_recent_events=3)) == ["17", "18", "19"]
    assert got == session


async def test_of_two_who_hold_one_revision_the_second_is_refused(services: list[PostgresSessionService]) -> None:
    session = await services[0].create_session(**ANN)
    held = [await read(service, session.id) for service in services]
    before = held[1].model_copy(deep=True)

    await services[0].append_event(held[0], changed({"who": "first"}))
    with pytest.raises(StaleSessionError, match="modified in storage"):
        await services[1].append_event(held[1], changed({"who": "second", "temp:t": 1}))

    assert held[1] == before
    assert (await read(services[1], session.id)).state == {"who": "first"}


@pytest.mark.parametrize("timestamp", [5.0, 1.0], ids=["equal", "older"])
async def test_a_stale_writer_is_refused_although_the_last_event_has_the_time_it_saw(
    services: list[PostgresSessionService], timestamp: float
) -> None:
    session = await services[0].create_session(**ANN)
    await services[0].append_event(session, said("first", timestamp=5.0))
    stale = await read(services[1], session.id)
    await services[0].append_event(session, said("between", timestamp=timestamp))

    with pytest.raises(StaleSessionError):
        await services[1].append_event(stale, said("stale", timestamp=6.0))

    assert texts(await read(services[0], session.id)) == ["first", "between"]


async def test_of_many_copies_at_once_exactly_one_appends(services: list[PostgresSessionService]) -> None:
    session = await services[0].create_session(**ANN)

    for turn in range(4):
        latest = await read(services[0], session.id)
        copies = [latest.model_copy(deep=True) for _ in range(4)]
        outcomes = await asyncio.gather(
            *(services[n % 2].append_event(copy, said(f"{turn}")) for n, copy in enumerate(copies)),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Event", *["StaleSessionError"] * 3]

    assert texts(await read(services[1], session.id)) == ["0", "1", "2", "3"]


async def test_a_counter_that_is_read_changed_and_retried_loses_nothing(services: list[PostgresSessionService]) -> None:
    session = await services[0].create_session(**ANN, state={"count": 0})

    async def worker(service: PostgresSessionService) -> None:
        for _ in range(5):
            while True:
                mine = await read(service, session.id, num_recent_events=0)
                try:
                    await service.append_event(mine, changed({"count": mine.state["count"] + 1}))
                    break
                except StaleSessionError:
                    continue

    async with asyncio.timeout(60):
        await asyncio.gather(*(worker(services[n % 2]) for n in range(8)))

    got = await read(services[1], session.id)
    assert (got.state, len(got.events)) == ({"count": 40}, 40)


async def test_events_given_to_one_session_at_once_are_stored_in_their_order(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)

    await asyncio.gather(*(service.append_event(session, said(str(n))) for n in range(32)))

    assert texts(session) == [str(n) for n in range(32)]
    assert await read(service, session.id) == session


async def test_the_same_from_another_loop_too(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)

    async def append_all() -> None:
        await asyncio.gather(*(service.append_event(session, said(str(n))) for n in range(8)))

    await asyncio.to_thread(lambda: asyncio.run(append_all()))

    assert texts(session) == [str(n) for n in range(8)]
    assert await read(service, session.id) == session


async def test_sessions_made_at_once_keep_all_that_they_share(services: list[PostgresSessionService]) -> None:
    shared = [{f"app:a{n}": n, f"user:u{n}": n} for n in range(24)]

    await asyncio.gather(
        *(services[n % 2].create_session(**ANN, session_id=f"s{n}", state=state) for n, state in enumerate(shared))
    )

    expected = {key: value for state in shared for key, value in state.items()}
    assert (await read(services[0], "s0")).state == expected
    assert len((await services[1].list_sessions(**ANN)).sessions) == 24


async def test_of_many_who_make_one_session_at_once_one_does(services: list[PostgresSessionService]) -> None:
    outcomes = await asyncio.gather(
        *(services[n % 2].create_session(**ANN, session_id="s", state={"n": n}) for n in range(8)),
        return_exceptions=True,
    )

    made = [outcome for outcome in outcomes if isinstance(outcome, Session)]
    assert [type(outcome) for outcome in outcomes].count(AlreadyExistsError) == 7
    assert await read(services[0], "s") == made[0]


async def test_an_event_that_comes_twice_is_stored_once(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, state={"count": 0})
    event = changed({"count": 1})

    for _ in range(3):
        assert await service.append_event(session, event) is event
    await service.append_event(session, changed({"count": 2}))
    await service.append_event(session, event)

    assert session.state == {"count": 2}
    assert len(session.events) == 2
    assert await read(service, session.id) == session


async def test_an_event_whose_acknowledgement_was_lost_can_be_sent_again(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    event = said("hello")
    unaware = session.model_copy(deep=True)
    await service.append_event(session, event.model_copy(deep=True))

    await service.append_event(unaware, event)
    await service.append_event(unaware, said("and on"))

    assert texts(unaware) == ["hello", "and on"]
    assert await read(service, session.id) == unaware


async def test_who_is_behind_is_told_so_even_after_a_repeated_event(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    behind = session.model_copy(deep=True)
    first, second = said("first"), said("second")
    await service.append_event(session, first)
    await service.append_event(session, second)

    await service.append_event(behind, second)

    with pytest.raises(StaleSessionError):
        await service.append_event(behind, said("third"))
    assert texts(await read(service, session.id)) == ["first", "second"]


HOSTILE = ["nul \0 nul", "half \ud83d", "\U0010fffe0000", math.nan, math.inf, -math.inf, 1e16, 2**80, -0.5]


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("value", HOSTILE, ids=repr)
async def test_what_a_model_may_say_comes_back_as_it_was(service: PostgresSessionService, value: Any) -> None:
    session = await service.create_session(**ANN, state={"start": value, "user:u": [value]})
    call = FunctionCall(id="c1", name="tool", args={"value": value, "list": [value]})
    event = Event(
        author="support",
        content=Content(role="model", parts=[Part(text=str(value)), Part(function_call=call)]),
        actions=EventActions(state_delta={"now": value, "app:a": {"in": value}}),
        custom_metadata={"value": value},
    )

    await service.append_event(session, event)

    got = await read(service, session.id)
    assert repr(got.events) == repr([event])
    assert repr(sorted(got.state.items())) == repr(sorted(session.state.items()))
    await service.append_event(got, said("and on"))
    assert len((await read(service, session.id)).events) == 2


@pytest.mark.req("ENG-09")
@pytest.mark.parametrize("name", ["nul\0", "half \ud83d", "a/b", "%2F", "ü 😀", "' \" \\ $1", "ü" * 900])
async def test_any_string_names_an_app_a_user_and_a_session(service: PostgresSessionService, name: str) -> None:
    mine: dict[str, Any] = {"app_name": name, "user_id": name}
    await service.create_session(**ANN, session_id=name)
    session = await service.create_session(**mine, session_id=name, state={"user:u": 1})
    await service.append_event(session, said("hello", author="user"))

    assert await service.get_session(**mine, session_id=name) == session
    assert [(one.user_id, one.id) for one in (await service.list_sessions(app_name=name)).sessions] == [(name, name)]
    assert await service.get_user_state(**mine) == {"u": 1}
    await service.delete_session(**mine, session_id=name)
    assert await service.get_session(**mine, session_id=name) is None
    assert await service.get_session(**ANN, session_id=name) is not None


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    "names", [("a", "u", "x" * 2001), ("x" * 9000, "u", "s"), ("a", "x" * 9000, "s"), ("", "u", "s")]
)
async def test_a_name_that_cannot_be_a_key_is_refused(
    service: PostgresSessionService, names: tuple[str, str, str]
) -> None:
    app, user, id = names

    with pytest.raises(HoldfastError):
        await service.create_session(app_name=app, user_id=user, session_id=id)

    assert await service.get_session(app_name=app, user_id=user, session_id=id) is None


async def test_nothing_can_be_appended_to_a_deleted_session(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, session_id="s")
    await service.delete_session(**ANN, session_id="s")

    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, said("late"))

    again = await service.create_session(**ANN, session_id="s")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, said("late"))
    assert await read(service, "s") == again


async def test_a_session_is_read_as_it_was_at_one_moment(services: list[PostgresSessionService]) -> None:
    session = await services[0].create_session(**ANN, state={"count": 0, "user:count": 0, "app:count": 0})
    written = asyncio.Event()

    async def write() -> None:
        for n in range(1, 101):
            await services[0].append_event(session, changed({"count": n, "user:count": n, "app:count": n}, timestamp=n))
        written.set()

    writing = asyncio.create_task(write())
    seen: set[int] = set()
    async with asyncio.timeout(60):
        while not written.is_set():
            got = await read(services[1], session.id)
            count = len(got.events)
            assert set(got.state.values()) == {count}
            assert [event.timestamp for event in got.events] == list(range(1, count + 1))
            assert count == 0 or got.last_update_time == count
            seen.add(count)
    await writing

    assert len(seen) > 3


async def test_an_append_is_one_statement(engine: Engine, service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    await service.append_event(session, said("hello"))
    sent: list[str] = []
    call = engine.database._call  # pyright: ignore[reportPrivateUsage]

    async def counted(method: str, statement: str, *args: Any, **options: Any) -> Any:
        sent.append(statement)
        return await call(method, statement, *args, **options)

    engine.database._call = counted  # pyright: ignore[reportPrivateUsage]
    await service.append_event(session, changed({"a": 1, "user:b": 2}))
    appended, sent[:] = list(sent), []
    await read(service, session.id)

    assert (len(appended), len(sent)) == (1, 1)
