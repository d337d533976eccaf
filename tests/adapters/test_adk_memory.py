"""What every memory service owes ADK, and what ours adds."""

import asyncio
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.adk.cli.service_registry import get_service_registry
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from holdfast.adapters.adk import PostgresMemoryService, PostgresSessionService
from holdfast.core.config import Config
from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge, Unavailable
from holdfast.core.ids import identity_id
from holdfast.engine import Engine, open_engine
from holdfast.memory import Memory, user
from holdfast.memory.drafts import MAX_CONTENT_BYTES
from tests.adapters.adk_events import said

pytestmark = pytest.mark.req("ADK-02")

ANN: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}
BOB: dict[str, Any] = {"app_name": "shop", "user_id": "bob"}
ANN_ELSEWHERE: dict[str, Any] = {"app_name": "bank", "user_id": "ann"}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def engine(engine_without_model: Engine) -> Engine:
    return engine_without_model


@pytest.fixture
def service(engine: Engine) -> PostgresMemoryService:
    return PostgresMemoryService(engine)


def session_of(*events: Event, id: str = "web-42", **whose: Any) -> Session:
    return Session(id=id, events=list(events), **(whose or ANN))


def by_user(text: str, **more: Any) -> Event:
    return said(text, author="user", **more)


def fact(text: str, **more: Any) -> MemoryEntry:
    return MemoryEntry(content=Content(parts=[Part(text=text)]), **more)


async def found(service: PostgresMemoryService, query: str, **whose: Any) -> list[str]:
    return [text_of(entry) for entry in await entries(service, query, **whose)]


async def entries(service: PostgresMemoryService, query: str, **whose: Any) -> list[MemoryEntry]:
    return (await service.search_memory(**(whose or ANN), query=query)).memories


def text_of(entry: MemoryEntry) -> str:
    assert entry.content.parts is not None
    assert entry.content.parts[0].text is not None
    return entry.content.parts[0].text


async def stored(engine: Engine, name: str = "ann", **asked: Any) -> list[Memory]:
    """All of a user's memories, in the order in which they were said."""
    hits = await engine.memory.search(user(name), "anything", limit=1000, min_importance=0, **asked)
    return sorted((hit.memory for hit in hits), key=lambda memory: (memory.seq or 0, memory.id))


# Sessions and events


async def test_what_was_said_in_a_session_is_found_as_it_was_said(service: PostgresMemoryService) -> None:
    asked = by_user("I am allergic to peanuts.", id="e1", timestamp=NOON.timestamp())
    await service.add_session_to_memory(session_of(asked, said("I will keep that in mind.")))

    [entry] = [entry for entry in await entries(service, "peanuts") if entry.author == "user"]

    assert entry.content == asked.content
    assert entry.timestamp == "2026-01-01T12:00:00+00:00"
    assert entry.custom_metadata == {"app_name": "shop", "session_id": "web-42", "event_id": "e1"}
    assert entry.id


async def test_a_memory_says_where_when_and_by_whom_it_was_said(engine: Engine, service: PostgresMemoryService) -> None:
    times = [NOON.timestamp(), NOON.timestamp() + 1]
    await service.add_session_to_memory(
        session_of(by_user("Where is it?", timestamp=times[0], id="e1"), said("In Rome.", timestamp=times[1]))
    )

    asked, answered = await stored(engine)

    assert (asked.owner, asked.type, asked.source) == (user("ann", agent="shop"), "turn", "e1")
    assert (asked.conversation, asked.author, asked.trust, asked.at) == ("web-42", "user", "user", NOON)
    assert (answered.author, answered.trust, answered.at) == ("support", "agent", NOON + timedelta(seconds=1))


async def test_a_session_that_is_added_again_adds_what_is_new(engine: Engine, service: PostgresMemoryService) -> None:
    session = session_of(by_user("one"), said("two"))
    await service.add_session_to_memory(session)
    before = await stored(engine)

    session.events += [by_user("one"), said("three")]
    for _ in range(2):
        await service.add_session_to_memory(session)

    after = await stored(engine)
    assert [memory.content for memory in after] == ["one", "two", "one", "three"]
    assert [memory.id for memory in after[:2]] == [memory.id for memory in before]


async def test_a_session_that_many_add_at_once_is_there_once(engine: Engine, service: PostgresMemoryService) -> None:
    session = session_of(*(by_user(f"number {n}") for n in range(20)))

    async with asyncio.timeout(60):
        await asyncio.gather(*(service.add_session_to_memory(session) for _ in range(8)))

    assert [memory.content for memory in await stored(engine)] == [f"number {n}" for n in range(20)]


async def test_a_session_longer_than_what_is_stored_together_is_there_whole(
    engine: Engine, service: PostgresMemoryService
) -> None:
    await service.add_session_to_memory(session_of(*(by_user(f"number {n}") for n in range(700))))

    assert [memory.content for memory in await stored(engine)] == [f"number {n}" for n in range(700)]


async def test_events_are_added_to_those_of_their_session(engine: Engine, service: PostgresMemoryService) -> None:
    events = [by_user("one"), said("two"), by_user("three")]
    await service.add_session_to_memory(session_of(*events[:2]))

    await service.add_events_to_memory(**ANN, events=events[1:], session_id="web-42")

    assert [memory.content for memory in await stored(engine)] == ["one", "two", "three"]


async def test_events_without_a_session_are_added_once(engine: Engine, service: PostgresMemoryService) -> None:
    events = [by_user("one"), said("two")]
    for _ in range(2):
        await service.add_events_to_memory(**ANN, events=events)

    kept = await stored(engine)

    assert [(memory.content, memory.conversation) for memory in kept] == [("one", None), ("two", None)]


@pytest.mark.parametrize("times", [[7.0] * 5, [5.0, 4.0, 3.0, 2.0, 1.0], [math.nan, 1.0, math.inf, 1e20, 2.0]])
async def test_events_keep_their_order_whatever_their_times(
    engine: Engine, service: PostgresMemoryService, times: list[float]
) -> None:
    events = [by_user(f"number {n}", timestamp=timestamp) for n, timestamp in enumerate(times)]

    await service.add_session_to_memory(session_of(*events[:3]))
    await service.add_session_to_memory(session_of(*events))

    assert [memory.content for memory in await stored(engine)] == [f"number {n}" for n in range(5)]


@pytest.mark.parametrize("letter", ["x", "茶", "\0"])
async def test_an_id_and_an_author_too_long_for_a_name_are_kept_whole_beside_it(
    engine: Engine, service: PostgresMemoryService, letter: str
) -> None:
    id, author = letter * 2001, letter * 2002
    session = session_of(by_user("one"), said("two", id=id, author=author), said("three", id=id + "!", author="bot"))

    for _ in range(2):
        await service.add_session_to_memory(session)
    await service.add_memory(**ANN, memories=[fact("four", author=author)])

    four, one, two, three = await stored(engine)
    assert [memory.content for memory in (one, two, three, four)] == ["one", "two", "three", "four"]
    assert (two.metadata["event_id"], two.metadata["author"]) == (id, author)
    assert two.source != three.source
    for memory in (two, four):
        assert memory.author
        assert author.startswith(memory.author)
        assert memory.metadata["author"] == author


async def test_a_text_too_long_for_one_memory_is_kept_in_pieces(engine: Engine, service: PostgresMemoryService) -> None:
    long = " ".join(f"word{n}" for n in range(20_000)) + " the password is swordfish"
    session = session_of(by_user("Read this."), by_user(long, id="e1"), said("Done."))

    for _ in range(2):
        await service.add_session_to_memory(session)

    kept = await stored(engine)
    assert "".join(memory.content for memory in kept if memory.source == "e1") == long
    assert [kept[0].content, kept[-1].content] == ["Read this.", "Done."]
    assert (await found(service, "swordfish"))[0].endswith("the password is swordfish")


@pytest.mark.parametrize("text", ["nul \0 inside", "half an emoji \ud83d", "\U0010fffe escaped", "喜欢喝绿茶"])
async def test_any_text_is_found_and_comes_back_as_it_was(service: PostgresMemoryService, text: str) -> None:
    await service.add_session_to_memory(session_of(by_user(text), id=text, app_name=text, user_id=text))

    assert await found(service, text, app_name=text, user_id=text) == [text]


# Whose they are


async def test_equal_texts_of_two_users_and_of_two_apps_never_meet(service: PostgresMemoryService) -> None:
    event = by_user("My password is swordfish.")
    for whose in (ANN, BOB, ANN_ELSEWHERE):
        await service.add_session_to_memory(session_of(event, **whose))

    ids = [[entry.id for entry in await entries(service, "password", **whose)] for whose in (ANN, BOB, ANN_ELSEWHERE)]

    assert [len(each) for each in ids] == [1, 1, 1]
    assert len({id for each in ids for id in each}) == 3


async def test_what_one_user_said_in_one_app_is_found_nowhere_else(service: PostgresMemoryService) -> None:
    await service.add_session_to_memory(session_of(by_user("My password is swordfish.")))

    for whose in (BOB, ANN_ELSEWHERE, {"app_name": "ann", "user_id": "shop"}):
        assert await entries(service, "password", **whose) == []


async def test_a_session_of_the_same_id_in_another_app_brings_nothing_up(service: PostgresMemoryService) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea."), id="web-42"))
    await service.add_session_to_memory(session_of(by_user("My password is swordfish."), id="web-42", **ANN_ELSEWHERE))

    assert await found(service, "password") == []


async def test_two_tenants_never_meet(engine: Engine, service: PostgresMemoryService) -> None:
    await engine.tenants.create("acme")
    theirs = PostgresMemoryService(engine, tenant="acme")
    await service.add_session_to_memory(session_of(by_user("My password is swordfish.")))

    assert await entries(theirs, "password") == []


async def test_what_adk_stored_others_find_and_the_other_way(engine: Engine, service: PostgresMemoryService) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))
    await engine.memory.remember(user("ann", agent="shop"), "She takes milk in her tea.")
    await engine.memory.remember(user("ann"), "Her tea is green: told to no app.")

    theirs = {hit.memory.content for hit in await engine.memory.search(user("ann"), "tea")}
    ours = set(await found(service, "tea"))

    assert ours == {"I drink tea.", "She takes milk in her tea."}
    assert theirs == {*ours, "Her tea is green: told to no app."}


@pytest.mark.parametrize("whose", [{"app_name": "", "user_id": "ann"}, {"app_name": "shop", "user_id": ""}])
async def test_nobody_and_no_app_are_refused(service: PostgresMemoryService, whose: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="is empty"):
        await service.search_memory(**whose, query="tea")
    with pytest.raises(InvalidInput, match="is empty"):
        await service.add_session_to_memory(session_of(by_user("tea"), **whose))


# Searching


async def test_the_best_come_first_and_no_more_than_asked_for(engine: Engine) -> None:
    service = PostgresMemoryService(engine)
    talk = [f"We spoke about parcel {n}." for n in range(20)]
    for n, text in enumerate([*talk, "The green parcel is in Rome."]):
        await service.add_session_to_memory(session_of(by_user(text), id=f"web-{n}"))

    texts = await found(service, "Where is the green parcel?")

    assert texts[0] == "The green parcel is in Rome."
    assert len(texts) == 10
    assert await found(PostgresMemoryService(engine, max_results=1), "the green parcel") == texts[:1]


async def test_without_a_model_what_shares_nothing_with_the_question_is_not_found(
    service: PostgresMemoryService,
) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea."), id="one"))
    await service.add_session_to_memory(session_of(by_user("I live in Rome."), id="two"))

    assert await found(service, "tea") == ["I drink tea."]
    assert await found(service, "zeppelin") == []


async def test_with_a_model_it_is_found_by_what_it_means(engine_with_models: Engine) -> None:
    service = PostgresMemoryService(engine_with_models)
    for n, text in enumerate(["I prefer Darjeeling over espresso.", "My sister lives in Rome.", "我养了一只猫。"]):
        await service.add_session_to_memory(session_of(by_user(text), id=f"web-{n}"))

    drinks = await found(service, "Which hot beverage does the customer like?")
    pets = await found(service, "养了什么宠物")

    assert drinks[0] == "I prefer Darjeeling over espresso."
    assert pets[0] == "我养了一只猫。"


async def test_without_a_model_what_was_said_beside_an_answer_is_found_with_it(service: PostgresMemoryService) -> None:
    talk = session_of(by_user("Which school does Mia go to?"), said("The one by the river."), id="one")
    await service.add_session_to_memory(talk)
    await service.add_session_to_memory(session_of(by_user("I drink tea."), id="two"))

    assert await found(service, "school") == ["Which school does Mia go to?", "The one by the river."]


@pytest.mark.parametrize("query", ["", " \n"])
async def test_an_empty_question_finds_nothing(service: PostgresMemoryService, query: str) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))

    assert await entries(service, query) == []


async def test_of_a_very_long_question_the_beginning_counts(service: PostgresMemoryService) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))

    assert await found(service, "tea " * 100_000) == ["I drink tea."]


# Memories given as such


async def test_a_memory_is_added_as_it_is_given(engine: Engine, service: PostgresMemoryService) -> None:
    given = fact("Prefers tea.", author="support", timestamp="2026-01-01T12:00:00Z", custom_metadata={"topic": "food"})
    await service.add_memory(**ANN, memories=[given, fact("Lives in Rome.")])

    [entry] = await entries(service, "tea")

    assert (text_of(entry), entry.author, entry.timestamp) == ("Prefers tea.", "support", "2026-01-01T12:00:00+00:00")
    assert entry.custom_metadata == {"topic": "food", "app_name": "shop"}
    assert [(memory.type, memory.trust) for memory in await stored(engine)] == [("fact", "agent"), ("fact", "user")]


async def test_a_memory_added_again_is_there_once_and_with_its_id_it_can_be_changed(
    service: PostgresMemoryService,
) -> None:
    for text in ("Drinks tea.", "Drinks tea.", "Drinks tea with milk."):
        await service.add_memory(**ANN, memories=[fact(text, id="drink"), fact("Takes tea at five.")])

    assert sorted(await found(service, "tea")) == ["Drinks tea with milk.", "Takes tea at five."]
    await service.add_memory(**BOB, memories=[fact("Hates tea.", id="drink")])
    assert await found(service, "tea", **BOB) == ["Hates tea."]


async def test_a_memory_that_is_changed_to_what_another_says_is_that_one(service: PostgresMemoryService) -> None:
    await service.add_memory(**ANN, memories=[fact("Drinks tea.", id="drink"), fact("Drinks green tea.")])

    await service.add_memory(**ANN, memories=[fact("Drinks green tea.", id="drink")])

    assert await found(service, "tea") == ["Drinks green tea."]


async def test_custom_metadata_says_how_long_and_how_much_it_matters(
    engine: Engine, service: PostgresMemoryService
) -> None:
    options = {"ttl": 60, "importance": 0.7, "type": "preference", "trust": "untrusted", "topic": "food", "none": None}
    await service.add_memory(**ANN, memories=[fact("Prefers tea.")], custom_metadata=options)
    await service.add_events_to_memory(**ANN, events=[by_user("I prefer tea.")], custom_metadata=options)

    kept = await stored(engine)

    assert [(one.type, one.importance, one.trust) for one in kept] == [("preference", 0.7, "untrusted")] * 2
    assert [one.metadata["topic"] for one in kept] == ["food", "food"]
    assert all(one.expires_at == one.created_at + timedelta(minutes=1) for one in kept)


@pytest.mark.parametrize(
    ("entry", "options", "error"),
    [
        (fact(""), {}, InvalidInput),
        (MemoryEntry(content=Content(parts=[Part.from_bytes(data=b"png", mime_type="image/png")])), {}, InvalidInput),
        (fact("x" * (MAX_CONTENT_BYTES + 1)), {}, TooLarge),
        (fact("tea", timestamp="yesterday"), {}, InvalidInput),
        (fact("tea"), {"ttl": -1}, InvalidInput),
        (fact("tea"), {"ttl": "soon"}, InvalidInput),
        (fact("tea"), {"importance": 7}, InvalidInput),
        (fact("tea"), {"trust": "blind"}, InvalidInput),
    ],
)
async def test_what_cannot_be_remembered_is_refused_and_nothing_is_stored(
    engine: Engine,
    service: PostgresMemoryService,
    entry: MemoryEntry,
    options: dict[str, object],
    error: type[HoldfastError],
) -> None:
    with pytest.raises(error):
        await service.add_memory(**ANN, memories=[fact("Lives in Rome."), entry], custom_metadata=options)

    assert await stored(engine) == []


# Deleting


async def test_a_deleted_memory_is_gone_and_does_not_come_back_with_its_session(
    engine: Engine, service: PostgresMemoryService
) -> None:
    session = session_of(by_user("My password is swordfish."), by_user("I drink tea."))
    await service.add_session_to_memory(session)
    [secret] = [entry for entry in await entries(service, "password") if "swordfish" in text_of(entry)]

    await service.delete_memory(**ANN, memory_id=secret.id)
    await service.add_session_to_memory(session)
    await service.add_events_to_memory(**ANN, events=session.events, session_id=session.id)

    assert [memory.content for memory in await stored(engine)] == ["I drink tea."]
    await service.add_events_to_memory(**BOB, events=session.events, session_id=session.id)
    assert len(await stored(engine, "bob")) == 2


async def test_only_its_own_user_and_app_can_delete_a_memory(engine: Engine, service: PostgresMemoryService) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))
    other = await engine.memory.remember(user("ann"), "Told to no app.")
    [entry] = await entries(service, "tea")

    for whose in (BOB, ANN_ELSEWHERE):
        await service.delete_memory(**whose, memory_id=entry.id)
    await service.delete_memory(**ANN, memory_id=str(other.id))

    assert len(await stored(engine)) == 2


@pytest.mark.parametrize("id", [None, "", "nothing", "\0", "00000000-0000-0000-0000-000000000000"])
async def test_deleting_what_is_not_there_does_nothing(
    engine: Engine, service: PostgresMemoryService, id: str | None
) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))

    await service.delete_memory(**ANN, memory_id=id)

    assert len(await stored(engine)) == 1


async def test_a_user_may_be_named_by_the_id_that_stands_for_them(
    engine: Engine, service: PostgresMemoryService
) -> None:
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))
    id = str(identity_id(await engine.identities.tenant(), "user", "ann"))

    [entry] = await entries(service, "tea", app_name="shop", user_id=id)
    await service.delete_memory(app_name="shop", user_id=id, memory_id=entry.id)

    assert await stored(engine) == []


# Where it runs


async def test_adk_finds_the_service_by_an_address(
    engine: Engine, service: PostgresMemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", str(engine.config.data))
    monkeypatch.setenv("HOLDFAST_MEMORY__EMBEDDING__FETCH", "false")
    await service.add_session_to_memory(session_of(by_user("I drink tea.")))
    address = engine.place.owner_url.replace("postgresql://", "holdfast://")

    made = get_service_registry().create_memory_service(address)

    assert isinstance(made, PostgresMemoryService)
    async with made:
        assert await found(made, "tea") == ["I drink tea."]


async def test_it_can_be_called_from_another_loop(service: PostgresMemoryService) -> None:
    async def elsewhere() -> list[str]:
        await service.add_session_to_memory(session_of(by_user("I drink tea.")))
        return await found(service, "tea")

    assert await asyncio.to_thread(lambda: asyncio.run(elsewhere())) == ["I drink tea."]


async def test_a_session_of_our_service_is_remembered_as_it_is_read(
    engine: Engine, service: PostgresMemoryService
) -> None:
    sessions = PostgresSessionService(engine)
    session = await sessions.create_session(**ANN, session_id="web-42")
    await sessions.append_event(session, by_user("I drink tea."))
    await service.add_session_to_memory(session)

    read = await sessions.get_session(**ANN, session_id="web-42")
    assert read is not None
    await service.add_session_to_memory(read)

    assert [memory.content for memory in await stored(engine)] == ["I drink tea."]


async def test_of_an_engine_that_was_closed_nothing_can_be_asked(config_without_model: Config) -> None:
    async with open_engine(config=config_without_model) as engine:
        service = PostgresMemoryService(engine)

    with pytest.raises(Unavailable, match="engine is closed"):
        await entries(service, "tea")
    with pytest.raises(Unavailable, match="engine is closed"):
        await service.add_session_to_memory(session_of(by_user("I drink tea.")))
