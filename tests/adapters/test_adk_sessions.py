"""What every session service owes ADK."""

import enum
import time
from typing import Any

import pytest
from google.adk.cli.service_registry import get_service_registry
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types
from pydantic import BaseModel

from holdfast.adapters.adk import PostgresSessionService
from holdfast.core.errors import HoldfastError, NotFound
from holdfast.engine import Engine
from tests.adapters.adk_events import changed, said

pytestmark = pytest.mark.req("ADK-01")

ANN: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}
BOB: dict[str, Any] = {"app_name": "shop", "user_id": "bob"}


@pytest.fixture
def service(engine: Engine) -> PostgresSessionService:
    return PostgresSessionService(engine)


async def read(service: PostgresSessionService, session: Session, **config: Any) -> Session:
    found = await service.get_session(
        app_name=session.app_name, user_id=session.user_id, session_id=session.id, config=GetSessionConfig(**config)
    )
    assert found is not None
    return found


# Sessions


async def test_a_session_is_read_as_it_was_made(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, state={"step": 1, "nested": {"a": [1, 2.5, True, None]}})

    assert (session.app_name, session.user_id, session.events) == ("shop", "ann", [])
    assert session.id
    assert session.last_update_time <= time.time()
    assert await read(service, session) == session


async def test_a_session_that_is_not_there_is_none(service: PostgresSessionService) -> None:
    assert await service.get_session(**ANN, session_id="nothing") is None
    assert await service.get_session(**ANN, session_id="") is None


@pytest.mark.parametrize("id", ["web-42", " ", "", "\n"])
async def test_an_id_may_be_given_and_a_blank_one_is_as_good_as_none(service: PostgresSessionService, id: str) -> None:
    session = await service.create_session(**ANN, session_id=id)

    assert session.id == (id.strip() or session.id)
    assert session.id.strip()


async def test_spaces_around_an_id_do_not_count(service: PostgresSessionService) -> None:
    made = await service.create_session(**ANN, session_id=" web-42 ")

    assert made.id == "web-42"
    assert await service.get_session(**ANN, session_id=" web-42") == made
    await service.delete_session(**ANN, session_id="web-42\n")
    assert await service.get_session(**ANN, session_id="web-42") is None


async def test_an_id_in_use_is_refused_and_changes_nothing(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, session_id="web-42", state={"step": 1, "app:theme": "dark"})

    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ANN, session_id="web-42", state={"step": 2, "app:theme": "light"})

    assert await read(service, session) == session


async def test_one_id_is_a_session_of_its_own_for_each_app_and_user(service: PostgresSessionService) -> None:
    owners = [("shop", "ann"), ("shop", "bob"), ("blog", "ann"), ("adk://shop", "ann/")]
    for app, user in owners:
        session = await service.create_session(app_name=app, user_id=user, session_id="s", state={"of": [app, user]})
        await service.append_event(session, said(f"{app} {user}"))

    for app, user in owners:
        got = await service.get_session(app_name=app, user_id=user, session_id="s")
        listed = await service.list_sessions(app_name=app, user_id=user)
        with pytest.raises(AlreadyExistsError):
            await service.create_session(app_name=app, user_id=user, session_id="s")
        assert got is not None
        assert (got.id, got.app_name, got.user_id, got.state) == ("s", app, user, {"of": [app, user]})
        assert [event.content.parts[0].text for event in got.events if event.content and event.content.parts] == [
            f"{app} {user}"
        ]
        assert [one.id for one in listed.sessions] == ["s"]


async def test_an_id_that_looks_like_a_qualified_one_comes_back_as_it_was(service: PostgresSessionService) -> None:
    ids = ["s", "adk://shop/ann/s", "adk://shop/ann/adk://shop/ann/s", "adk://shop/bob/s"]
    for id in ids:
        await service.create_session(**ANN, session_id=id, state={"id": id})

    listed = await service.list_sessions(**ANN)

    assert sorted(session.id for session in listed.sessions) == sorted(ids)
    for id in ids:
        got = await service.get_session(**ANN, session_id=id)
        assert got is not None
        assert (got.id, got.state) == (id, {"id": id})


async def test_sessions_are_listed_without_events_the_least_recently_used_first(
    service: PostgresSessionService,
) -> None:
    sessions = [await service.create_session(**ANN, session_id=f"s{n}", state={"n": n, "user:k": 1}) for n in range(5)]
    await service.append_event(sessions[1], said("hello", timestamp=time.time() + 10))
    await service.append_event(sessions[3], said("hello", timestamp=1.0))
    of_bob = await service.create_session(**BOB, session_id="s0", state={"app:a": 2})
    await service.create_session(app_name="blog", user_id="ann")

    anns = (await service.list_sessions(**ANN)).sessions
    all = (await service.list_sessions(app_name="shop")).sessions

    assert [one.id for one in anns] == ["s3", "s0", "s2", "s4", "s1"]
    assert [one.state for one in anns] == [{"n": int(one.id[1]), "user:k": 1, "app:a": 2} for one in anns]
    assert [one.events for one in anns] == [[]] * 5
    assert [(one.user_id, one.id) for one in all] == [
        ("ann", "s3"), ("ann", "s0"), ("ann", "s2"), ("ann", "s4"), ("bob", of_bob.id), ("ann", "s1")
    ]  # fmt: skip
    assert (await service.list_sessions(app_name="shop", user_id="")).sessions == []


async def test_a_listed_session_can_be_continued(service: PostgresSessionService) -> None:
    await service.create_session(**ANN, session_id="s")

    listed = (await service.list_sessions(**ANN)).sessions[0]
    await service.append_event(listed, said("hello"))

    assert len((await read(service, listed)).events) == 1


async def test_a_deleted_session_is_gone_and_what_its_user_and_app_share_stays(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, state={"app:a": 1, "user:u": 2, "s": 3})

    await service.delete_session(**BOB, session_id=session.id)
    assert await service.get_session(**ANN, session_id=session.id) is not None
    for _ in range(2):
        await service.delete_session(**ANN, session_id=session.id)

    assert await service.get_session(**ANN, session_id=session.id) is None
    assert (await service.create_session(**ANN)).state == {"app:a": 1, "user:u": 2}


# State


async def test_state_is_shared_as_its_prefix_says(service: PostgresSessionService) -> None:
    first = await service.create_session(**ANN, state={"app:a": 1, "user:u": 1, "s": 1})
    await service.append_event(first, changed({"app:b": 2, "user:v": 2, "t": 2}))

    anns, bobs = await service.create_session(**ANN), await service.create_session(**BOB)
    elsewhere = await service.create_session(app_name="blog", user_id="ann")

    assert first.state == {"app:a": 1, "app:b": 2, "user:u": 1, "user:v": 2, "s": 1, "t": 2}
    assert (await read(service, first)).state == first.state
    assert anns.state == {"app:a": 1, "app:b": 2, "user:u": 1, "user:v": 2}
    assert bobs.state == {"app:a": 1, "app:b": 2}
    assert elsewhere.state == {}


async def test_a_change_replaces_a_mapping_stores_a_null_and_keeps_a_bool(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, state={"map": {"a": 1}, "gone": 1, "user:gone": 1})

    await service.append_event(session, changed({"map": {"b": 2}, "gone": None, "user:gone": None, "yes": True}))

    got = await read(service, session)
    assert got.state == {"map": {"b": 2}, "gone": None, "user:gone": None, "yes": True}
    assert got.state["yes"] is True
    assert got == session
    assert await service.get_user_state(**ANN) == {"gone": None}


async def test_temporary_state_is_seen_by_who_holds_the_session_and_never_stored(
    service: PostgresSessionService,
) -> None:
    session = await service.create_session(**ANN, state={"temp:start": 1})
    event = changed({"temp:out": "result", "kept": 1})

    await service.append_event(session, event)

    assert session.state == {"temp:out": "result", "kept": 1}
    assert event.actions.state_delta == {"kept": 1}
    got = await read(service, session)
    assert got.state == {"kept": 1}
    assert got.events == session.events


async def test_the_state_of_a_user_is_read_without_a_session(service: PostgresSessionService) -> None:
    assert await service.get_user_state(**ANN) == {}
    session = await service.create_session(**ANN, state={"user:profile": {"name": "Ann"}, "s": 1, "app:a": 1})
    await service.append_event(session, changed({"user:visits": 1}))
    await service.append_event(session, changed({"user:visits": 2}))

    assert await service.get_user_state(**ANN) == {"profile": {"name": "Ann"}, "visits": 2}
    assert await service.get_user_state(**BOB) == {}
    assert await service.get_user_state(app_name="blog", user_id="ann") == {}


class Size(enum.Enum):
    SMALL = "s"


class Order(BaseModel):
    item: str
    size: Size


async def test_values_that_are_no_json_are_stored_as_the_json_they_stand_for(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, state={"order": Order(item="tea", size=Size.SMALL), "tuple": (1, 2)})
    await service.append_event(session, changed({"size": Size.SMALL, "function": len}))

    state = (await read(service, session)).state

    assert state == {
        "order": {"item": "tea", "size": "s"},
        "tuple": [1, 2],
        "size": "s",
        "function": "<built-in function len>",
    }


# Events


async def test_an_event_comes_back_whole(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    picture = types.Part.from_bytes(data=bytes(range(256)), mime_type="image/png")
    event = Event(
        invocation_id="invocation",
        author="user",
        branch="root.support",
        content=types.Content(
            role="user", parts=[types.Part(text="look"), picture, types.Part(text="hm", thought=True)]
        ),
        turn_complete=True,
        partial=False,
        interrupted=True,
        actions=EventActions(
            artifact_delta={"file": 0}, transfer_to_agent="agent", escalate=True, route=["a", 1, True]
        ),
        long_running_tool_ids={"tool1", "tool2"},
        error_code="code",
        error_message="message",
        grounding_metadata=types.GroundingMetadata(
            web_search_queries=["query"], search_entry_point=types.SearchEntryPoint(sdk_blob=b"\xff\xfe\0blob")
        ),
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=1, total_token_count=2),
        citation_metadata=types.CitationMetadata(),
        custom_metadata={"key": "value", "none": None, "big": 2**70, "float": 1e300},
        input_transcription=types.Transcription(text="spoken", finished=True),
        output={"answer": [1]},
        timestamp=1700000000.123456,
    )

    await service.append_event(session, event)

    got = await read(service, session)
    assert got == session
    assert got.events == [event]
    assert got.last_update_time == session.last_update_time == event.timestamp


async def test_a_partial_event_is_not_stored(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    before = session.model_copy(deep=True)

    assert (await service.append_event(session, said("hel", partial=True))).partial

    assert session == before
    assert await read(service, session) == before


@pytest.mark.parametrize(
    ("asked", "times"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"num_recent_events": 0}, []),
        ({"num_recent_events": 3}, [3, 4, 5]),
        ({"num_recent_events": 9}, [1, 2, 3, 4, 5]),
        ({"after_timestamp": 4}, [4, 5]),
        ({"after_timestamp": 5.5}, []),
        ({"after_timestamp": 4, "num_recent_events": 3}, [4, 5]),
        ({"after_timestamp": 2, "num_recent_events": 1}, [5]),
    ],
)
async def test_as_many_events_are_read_as_asked_for_and_always_the_whole_state(
    service: PostgresSessionService, asked: dict[str, float], times: list[int]
) -> None:
    session = await service.create_session(**ANN)
    for n in range(1, 6):
        await service.append_event(session, changed({f"k{n}": n}, timestamp=n))

    got = await read(service, session, **asked)

    assert [event.timestamp for event in got.events] == times
    assert (got.state, got.last_update_time) == (session.state, 5)


async def test_a_part_of_a_session_can_be_continued(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    for n in range(3):
        await service.append_event(session, said(str(n)))

    part = await read(service, session, num_recent_events=0)
    await service.append_event(part, said("3"))

    assert len(part.events) == 1
    assert len((await read(service, session)).events) == 4


async def test_a_session_that_went_through_json_can_be_continued_unless_it_is_behind(
    service: PostgresSessionService,
) -> None:
    session = await service.create_session(**ANN)
    await service.append_event(session, said("1"))
    copies = [Session.model_validate_json(session.model_dump_json()) for _ in range(2)]

    await service.append_event(copies[0], said("2"))

    with pytest.raises(StaleSessionError, match="modified in storage"):
        await service.append_event(copies[1], said("3"))
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(id="other", app_name="shop", user_id="ann"), said("4"))
    assert len((await read(service, session)).events) == 2


async def test_the_marker_of_another_service_is_as_good_as_none(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN)
    session._storage_update_marker = "2026-11-15T07:00:00+00:00"  # pyright: ignore[reportPrivateUsage]

    await service.append_event(session, said("hello"))

    assert await read(service, session) == session


async def test_an_event_that_cannot_be_stored_changes_nothing(service: PostgresSessionService) -> None:
    session = await service.create_session(**ANN, state={"a": 1})
    before = session.model_copy(deep=True)
    loop: list[Any] = []
    loop.append(loop)
    unstorable = [
        changed({"half \ud83d": 1, "temp:t": 1}),
        changed({"deep": loop}),
        changed({"k" * 2000: 1}),
        said("late", timestamp=float("nan")),
        said("long", author="a" * 3000),
        said("x" * 9_000_000),
    ]

    for event in unstorable:
        with pytest.raises(HoldfastError):
            await service.append_event(session, event)

    assert session == before
    assert await read(service, session) == before
    await service.append_event(session, said("and on"))
    assert await read(service, session) == session


# Where it is found


@pytest.mark.req("SAFE-02")
async def test_another_tenant_sees_nothing_of_it(engine: Engine, service: PostgresSessionService) -> None:
    await engine.tenants.create("acme")
    acme = PostgresSessionService(engine, tenant="acme")
    session = await service.create_session(**ANN, session_id="s", state={"app:a": 1, "user:u": 1})

    assert await acme.get_session(**ANN, session_id="s") is None
    assert (await acme.list_sessions(app_name="shop")).sessions == []
    assert await acme.get_user_state(**ANN) == {}
    with pytest.raises(SessionNotFoundError):
        await acme.append_event(session, said("hello"))
    assert (await acme.create_session(**ANN, session_id="s")).state == {}


async def test_adk_finds_the_service_by_an_address(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    address = database_url.replace("postgresql://", "holdfast://localhost" if "///" in database_url else "holdfast://")

    service = get_service_registry().create_session_service(address, agents_dir=str(tmp_path))

    assert isinstance(service, PostgresSessionService)
    async with service:
        session = await service.create_session(**ANN, session_id="s")
        await service.append_event(session, said("hello"))
        await service.flush()
        assert await read(service, session) == session


async def test_a_tenant_that_is_not_there_is_an_error_at_the_first_use(engine: Engine) -> None:
    with pytest.raises(NotFound):
        await PostgresSessionService(engine, tenant="nobody").create_session(**ANN)
