import json
from datetime import UTC, datetime

import pytest

from holdfast.core.memory_settings import GraphSettings
from holdfast.engine import Engine
from holdfast.llm import Caller, ScriptedModel
from holdfast.memory import organization, session, user
from holdfast.memory.graph.model_reader import ModelReader, ReadEntity, ReadText, checked, parse_answer
from holdfast.postgres.database import Row
from tests.clock import Clock
from tests.memory.graph.documents import add_document, remove_document

ANSWER = [
    {
        "text": 1,
        "entities": [
            {"name": "grandmother", "type": "Person", "description": "She bakes."},
            {"name": "the old mill", "type": "Place"},
            {"name": "Atlantis", "type": "Place"},
        ],
        "relations": [
            {"source": "grandmother", "type": "LIVES_IN", "target": "the old mill"},
            {"source": "grandmother", "type": "lives", "target": "the old mill"},
            {"source": "grandmother", "type": "LIVES_IN", "target": "Atlantis"},
        ],
    }
]
pytestmark = [pytest.mark.req("GRAPH-01"), pytest.mark.usefixtures("no_models")]


TEXT = "my grandmother spent her childhood in the old mill"


def reader(engine: Engine, answer: str, *, tokens: int) -> tuple[ModelReader, ScriptedModel]:
    model = ScriptedModel([{"text": answer, "repeat": True}], name="scripted:answers")
    settings = GraphSettings(model=model.name, tokens_per_day=tokens)
    return ModelReader(
        engine.postgres, Caller(engine.config.llm, models=[model]), engine.shared_quotas, settings
    ), model


async def spent(engine: Engine) -> Row:
    row = await engine.database.one("select tokens, reserved, calls from graph_reading where tenant_id = $1")
    assert row is not None
    return row


async def test_a_model_finds_what_rules_do_not_and_only_what_the_text_says(engine: Engine) -> None:
    await engine.memory.remember(user("ann"), TEXT)
    await engine.memory.remember(session("s", user="ann"), "my neighbour lives in the old barn")
    reading, model = reader(engine, f"Here it is: {json.dumps(ANSWER)}", tokens=100_000)

    read = await reading.catch_up()

    [hit] = await engine.graph.search("grandmother", owners=[user("ann")])
    [near] = [each for each in await engine.graph.neighbours(hit.entity.id) if each.relation]
    assert (read, len(model.requests)) == (1, 1)
    assert (hit.entity.type, hit.entity.description) == ("Person", "She bakes.")
    assert (near.relation, near.entity.name) == ("LIVES_IN", "the old mill")
    assert not any(hit.by == "name" for hit in await engine.graph.search("Atlantis", owners=[user("ann")]))
    assert await reading.catch_up() == 0
    assert len(model.requests) == 1


async def test_chunks_are_read_too_and_what_was_found_goes_with_them(engine: Engine) -> None:
    document, _ = await add_document(engine, "Letters", [TEXT])
    reading, _ = reader(engine, json.dumps(ANSWER), tokens=100_000)

    await reading.catch_up()

    assert (await engine.graph.search("grandmother"))[0].entity.name == "grandmother"
    await remove_document(engine, document)
    assert await engine.graph.search("grandmother") == []


@pytest.mark.req("SAFE-02")
async def test_texts_of_two_users_are_never_in_one_question(engine: Engine) -> None:
    for number in range(2):
        await engine.memory.remember(user("ann"), f"{TEXT}, said Ann {number}")
    await engine.memory.remember(user("bob"), f"{TEXT}, said Bob")
    await engine.memory.remember(organization(), f"{TEXT}, said all")
    reading, model = reader(engine, json.dumps(ANSWER), tokens=100_000)

    read = await reading.catch_up()

    asked = [request.messages[-1].content for request in model.requests]
    assert read == 4
    assert [[name for name in ("Ann 0", "Ann 1", "Bob", "all") if f"said {name}" in each] for each in asked] == [
        ["Ann 0", "Ann 1"],
        ["Bob"],
        ["all"],
    ]


async def test_the_tokens_of_a_day_are_never_exceeded(engine: Engine, clock: Clock) -> None:
    await clock.set(datetime(2026, 1, 1, 12, tzinfo=UTC))
    for number in range(40):
        await engine.memory.remember(organization(), f"{TEXT}, letter {number}")
    reading, model = reader(engine, json.dumps(ANSWER), tokens=3_500)

    first = await reading.catch_up()
    calls, day = len(model.requests), await spent(engine)
    await clock.set(datetime(2026, 1, 2, 12, tzinfo=UTC))
    second = await reading.catch_up()

    assert 0 < first < 40
    assert (day["calls"], day["reserved"]) == (calls, 0)
    assert day["tokens"] <= 3_500
    assert second > 0


async def test_too_few_tokens_for_one_call_ask_nothing(engine: Engine) -> None:
    await engine.memory.remember(organization(), TEXT)
    reading, model = reader(engine, json.dumps(ANSWER), tokens=1_000)

    assert await reading.catch_up() == 0
    assert not model.requests


async def test_a_call_that_failed_stays_reserved(engine: Engine) -> None:
    await engine.memory.remember(organization(), TEXT)
    model = ScriptedModel([{"fail": {"status": 400}, "repeat": True}], name="scripted:failing")
    settings = GraphSettings(model=model.name, tokens_per_day=3_000)
    reading = ModelReader(engine.postgres, Caller(engine.config.llm, models=[model]), engine.shared_quotas, settings)

    for _ in range(3):
        assert await reading.catch_up() == 0

    assert len(model.requests) == 1
    assert (await spent(engine))["reserved"] > 2_000


async def test_it_is_off_by_default(engine: Engine) -> None:
    assert engine.config.memory.graph == GraphSettings(model="", tokens_per_day=0)


def test_an_answer_in_another_form_says_nothing() -> None:
    answers = [
        "",
        "no",
        "[1, 2]",
        '[{"text": "one"}]',
        "[" * 5000 + "]" * 5000,
        '[{"text": 1, "entities": [{"name": ""}]}]',
    ]

    assert [parse_answer(answer) for answer in answers] == [[]] * len(answers)


def test_names_and_types_of_an_answer_are_checked() -> None:
    found = ReadText(1, [ReadEntity("Acme", "Planet"), ReadEntity("Oslo", "Place")])

    assert checked(found, "We saw ACME.") == (
        {"entities": [{"key": "acme", "name": "Acme", "type": "Name"}], "relations": []},
        {},
    )
