import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge
from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.knowledge.hits import PassageHits
from holdfast.memory import Owner, agent, organization, session, user
from holdfast.postgres.database import Database
from tests.knowledge.stored import StoredChunk, StoredDocument, store

pytestmark = pytest.mark.req("KNOW-02")

HANDBOOK = StoredDocument(
    "handbook.pdf",
    [
        StoredChunk("Vacation requests are sent to the team lead at least two weeks before.", ("Vacation",), 3),
        StoredChunk("Trips abroad are approved by the head of finance, Maria Lopez.", ("Travel", "Approval"), 12),
        StoredChunk("A laptop that is lost must be reported to security within a day.", ("Security",), 20),
    ],
    title="Employee Handbook",
    metadata={"year": 2026, "kind": "policy"},
    source="https://intranet.example/handbook",
)
MENU = StoredDocument("menu.md", ["On Fridays the canteen serves fish.", "Soup is served daily."], collection="food")
CHINESE = StoredDocument("手册.md", ["员工出差需要财务主管批准。", "食堂每天供应汤。"], title="员工手册")


@pytest.fixture
def searching(engine: Engine, models: Store) -> Engine:
    """An engine that has its models."""
    assert models.find(engine.config.memory.embedding.model)
    return engine


def found(hits: PassageHits) -> list[tuple[str, int]]:
    """Which chunks of which documents were found, in order."""
    return [(hit.name, hit.chunk) for hit in hits]


async def test_a_question_finds_the_chunk_that_answers_it_and_says_where_it_is(searching: Engine) -> None:
    [handbook, _] = await store(searching, HANDBOOK, MENU)

    hits = await searching.knowledge.search("who has to agree before I travel to another country?", explain=True)

    best = hits[0]
    assert (best.name, best.chunk, best.document, best.section) == ("handbook.pdf", 1, handbook, ("Travel", "Approval"))
    assert best.text == "Trips abroad are approved by the head of finance, Maria Lopez."
    assert (best.title, best.collection, best.source) == ("Employee Handbook", "default", HANDBOOK.source)
    assert (best.owner, best.metadata) == (organization(), {"year": 2026, "kind": "policy"})
    assert best.citation == f"handbook.pdf, p. 12, characters {best.start}-{best.end}"
    assert best.end - best.start == len(best.text)
    assert hits.reduced == ""


async def test_a_search_is_one_round_trip(searching: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await store(searching, HANDBOOK)
    await searching.knowledge.search("travel")
    sent: list[str] = []
    for name in ("one", "all", "value", "run", "many"):
        real = getattr(Database, name)

        def spy(self: Database, statement: str, *args: Any, _real: Any = real, **options: Any) -> Any:
            sent.append(statement)
            return _real(self, statement, *args, **options)

        monkeypatch.setattr(Database, name, spy)

    hits = await searching.knowledge.search("who approves trips?", limit=3, where={"year": 2026}, explain=True)

    assert len(sent) == 1
    assert len(hits) == 3


async def test_the_parts_of_each_score_add_up_to_it(searching: Engine) -> None:
    await store(searching, HANDBOOK, MENU, CHINESE)

    hits = await searching.knowledge.search("What does the Employee Handbook say about trips?", explain=True)
    plain = await searching.knowledge.search("What does the Employee Handbook say about trips?")

    assert len(hits) == 5
    for hit in hits:
        assert hit.parts is not None
        assert hit.parts.total == pytest.approx(hit.score, abs=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [(hit.id, hit.score, hit.parts) for hit in plain] == [(hit.id, hit.score, None) for hit in hits]


async def test_a_document_whose_title_the_query_names_comes_first(searching: Engine) -> None:
    films = [
        StoredDocument(f"{year}", [f"A film about a lighthouse keeper, made in {year}."], title=title)
        for year, title in ((1921, "The Silent Coast"), (1922, "Harbour Lights"), (1923, "Salt"))
    ]
    await store(searching, *films)

    hits = await searching.knowledge.search("In which year was Harbour Lights made?", explain=True)

    assert hits[0].name == "1922"
    assert hits[0].parts is not None
    assert hits[0].parts.graph == pytest.approx(0.2)
    assert [hit.parts.graph for hit in hits[1:] if hit.parts is not None] == [0, 0]


async def test_a_title_of_many_documents_and_one_inside_of_a_longer_one_add_nothing(searching: Engine) -> None:
    readmes = [StoredDocument(f"{n}/README.md", [f"Notes about part {n}."], title="README") for n in range(33)]
    books = [
        StoredDocument("short", ["A book about towers."], title="Dark Tower"),
        StoredDocument("long", ["Another book about towers."], title="The Dark Tower Returns"),
    ]
    await store(searching, *readmes, *books)

    hits = await searching.knowledge.search("README of the Dark Tower Returns", limit=50, explain=True)

    named = {hit.name for hit in hits if hit.parts is not None and hit.parts.graph > 0.15}
    assert named == {"long"}


@pytest.mark.req("GRAPH-02")
async def test_a_question_of_two_hops_finds_the_document_that_the_first_one_points_to(searching: Engine) -> None:
    people = ["Ada Winter", "Carl Sommer", "Nora Herbst", "Olaf Fruehling"]
    films = [
        StoredDocument(f"film {n}", [f"Film number {n} was directed by {name}."], title=f"Film {n}")
        for n, name in enumerate(people)
    ]
    lives = [
        StoredDocument(name, [f"{name} was born in the small town of Place{n} and studied law there."], title=name)
        for n, name in enumerate(people)
    ]
    fillers = [
        StoredDocument(f"filler {n}", [f"The studio archive has a number {n} of film rolls."]) for n in range(30)
    ]
    await store(searching, *films, *lives, *fillers)

    hits = await searching.knowledge.search("Where was the director of Film 2 born?", limit=5, explain=True)

    assert {"film 2", "Nora Herbst"} <= {hit.name for hit in hits[:2]}
    hopped = next(hit for hit in hits if hit.name == "Nora Herbst")
    assert hopped.parts is not None
    assert hopped.parts.graph > 0.1


async def test_of_a_long_chunk_the_passage_that_answers_is_returned(searching: Engine) -> None:
    first = "The garden has roses, tulips and a pond with carps. " * 6
    second = "The server room is cooled to eighteen degrees by two redundant machines. " * 5
    text = f"{first}\n{second}"
    passages = ((0, len(first)), (len(first) + 1, len(text)))
    await store(searching, StoredDocument("mixed", [StoredChunk(text, passages=passages)]), MENU)

    [hit, *_] = await searching.knowledge.search("How cold is the server room?", limit=1)

    assert hit.name == "mixed"
    assert hit.text == second
    assert (hit.start, hit.end) == passages[1]


@pytest.mark.req("MEM-11")
async def test_questions_in_english_and_chinese_find_documents_in_their_language(searching: Engine) -> None:
    await store(searching, HANDBOOK, MENU, CHINESE)

    chinese = await searching.knowledge.search("谁批准出差？", limit=1)  # noqa: RUF001
    english = await searching.knowledge.search("Who approves trips abroad?", limit=1)

    assert found(chinese) == [("手册.md", 0)]
    assert found(english) == [("handbook.pdf", 1)]


LIMITS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a", "b", "c"}),
    ({"collections": ["red"]}, {"a", "b"}),
    ({"collections": ["red", "blue"]}, {"a", "b", "c"}),
    ({"collections": []}, set[str]()),
    ({"collections": ["green"]}, set[str]()),
    ({"where": {"kind": "x"}}, {"a", "c"}),
    ({"where": {"tags": ["one"]}}, {"b"}),
    ({"where": {"kind": "x"}, "collections": ["red"]}, {"a"}),
    ({"where": {"kind": "z"}}, set[str]()),
]


@pytest.mark.parametrize(("limits", "names"), LIMITS)
async def test_a_search_can_be_limited(engine: Engine, limits: dict[str, Any], names: set[str]) -> None:
    ids = await store(
        engine,
        StoredDocument("a", ["tea time"], title="Tea", collection="red", metadata={"kind": "x"}),
        StoredDocument(
            "b", ["tea time"], title="Tea", collection="red", metadata={"kind": "y", "tags": ["one", "two"]}
        ),
        StoredDocument("c", ["tea time"], title="Tea", collection="blue", metadata={"kind": "x"}),
    )

    hits = await engine.knowledge.search("Tea", **limits)
    of_two = await engine.knowledge.search("Tea", documents=[ids[0], ids[2], uuid4()], **limits)
    of_none = await engine.knowledge.search("Tea", documents=[], **limits)

    assert {hit.name for hit in hits} == names
    assert {hit.name for hit in of_two} == names - {"b"}
    assert of_none == []


async def test_documents_of_others_are_found_by_no_part_of_a_search(searching: Engine) -> None:
    await searching.tenants.create("acme")
    acme = searching.tenant("acme")
    mine, yours = user("ann"), user("bob")

    def document(owner: Owner, name: str) -> Sequence[StoredDocument]:
        return [
            StoredDocument(name, ["The secret project is led by Zoe Quartz."], title="Secret Project", owner=owner),
            StoredDocument(f"{name} 2", ["Zoe Quartz lives in Oslo."], title="Zoe Quartz", owner=owner),
        ]

    await store(searching, *document(mine, "mine"), *document(yours, "yours"), *document(organization(), "ours"))
    await store(searching, *document(agent("support"), "agent's"))
    await store(acme, *document(organization(), "theirs"))

    question = "Who leads the Secret Project, and where does that person live?"
    seen = {
        name: {hit.name for hit in await engine.knowledge.search(question, owners=owners)}
        for name, engine, owners in (
            ("default", searching, None),
            ("mine", searching, [mine]),
            ("two", searching, [mine, agent("support")]),
            ("nobody", searching, [user("eve")]),
            ("none", searching, []),
            ("theirs", acme, [organization(), mine]),
        )
    }

    assert seen == {
        "default": {"ours", "ours 2"},
        "mine": {"mine", "mine 2"},
        "two": {"mine", "mine 2", "agent's", "agent's 2"},
        "nobody": set[str](),
        "none": set[str](),
        "theirs": {"theirs", "theirs 2"},
    }


async def test_what_the_documents_of_others_say_changes_no_score(words_only: Engine) -> None:
    mine = [StoredDocument(f"{n}", [f"the falcon number {n} flies", "a heron waits"]) for n in range(5)]
    await store(words_only, *mine)
    before = await words_only.knowledge.search("falcon heron")

    others = [StoredDocument(f"{n}", ["falcon falcons everywhere"], owner=user("bob")) for n in range(50)]
    await store(words_only, *others)
    after = await words_only.knowledge.search("falcon heron")

    assert [(hit.id, hit.score) for hit in after] == [(hit.id, hit.score) for hit in before]


async def test_without_a_model_words_find_and_the_result_says_why(words_only: Engine) -> None:
    await store(words_only, HANDBOOK, MENU, CHINESE)

    hits = await words_only.knowledge.search("Who approves trips?", limit=1, explain=True)
    chinese = await words_only.knowledge.search("食堂", limit=1)

    assert found(hits) == [("handbook.pdf", 1)]
    assert hits[0].parts is not None
    assert hits[0].parts.vector == 0
    assert hits.reduced != ""
    assert found(chinese) == [("手册.md", 1)]


async def test_chunks_without_vectors_are_found_by_words_beside_others_that_have_them(searching: Engine) -> None:
    await store(searching, MENU)
    await store(searching, HANDBOOK, embed=False)

    hits = await searching.knowledge.search("lost laptop", explain=True)

    assert ("handbook.pdf", 2) in found(hits)
    assert [hit.text for hit in hits if hit.name == "handbook.pdf"] == [
        "A laptop that is lost must be reported to security within a day."
    ]


async def test_an_empty_tenant_finds_nothing(engine: Engine) -> None:
    assert await engine.knowledge.search("anything") == []


async def test_a_removed_document_is_not_found_and_a_new_one_at_once(searching: Engine) -> None:
    [gone, _] = await store(searching, HANDBOOK, MENU)
    before = await searching.knowledge.search("Employee Handbook: trips abroad")

    await searching.knowledge.remove(gone)
    after = await searching.knowledge.search("Employee Handbook: trips abroad")
    await store(searching, StoredDocument("new.md", ["Trips abroad need two signatures."]))
    again = await searching.knowledge.search("Employee Handbook: trips abroad")

    assert before[0].name == "handbook.pdf"
    assert {hit.name for hit in after} == {"menu.md"}
    assert again[0].name == "new.md"


async def test_a_search_beside_replacements_sees_the_old_or_the_new_version_whole(engine: Engine) -> None:
    [old] = await store(engine, StoredDocument("plan", [f"alpha beta {n}" for n in range(30)]))
    seen: list[set[str]] = []
    done = asyncio.Event()

    async def search() -> None:
        while not done.is_set():
            hits = await engine.knowledge.search("alpha beta", limit=100)
            seen.append({hit.text.rpartition(" ")[0] for hit in hits})

    async def replace() -> None:
        nonlocal old
        try:
            for version in range(8):
                async with engine.transaction() as tx:
                    await tx.run("delete from document where tenant_id = $1 and id = $2", old)
                    await tx.run("delete from chunk_term where tenant_id = $1 and document_id = $2", old)
                    await tx.run("delete from chunk_vector where tenant_id = $1 and document_id = $2", old)
                    [old] = await store(
                        engine, StoredDocument("plan", [f"alpha beta v{version} {n}" for n in range(30)]), tx=tx
                    )
        finally:
            done.set()

    async with asyncio.timeout(20):
        await asyncio.gather(search(), search(), replace())

    assert len(seen) > 2
    assert all(len(texts) == 1 for texts in seen), seen


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": ""}, InvalidInput),
        ({"query": "  \n"}, InvalidInput),
        ({"query": 7}, InvalidInput),
        ({"query": "x" * 20_001}, InvalidInput),
        ({"query": "x", "limit": 0}, InvalidInput),
        ({"query": "x", "limit": 1001}, InvalidInput),
        ({"query": "x", "limit": True}, InvalidInput),
        ({"query": "x", "owners": [session("web")]}, InvalidInput),
        ({"query": "x", "owners": ["ann"]}, InvalidInput),
        ({"query": "x", "owners": "ann"}, InvalidInput),
        ({"query": "x", "collections": "red"}, InvalidInput),
        ({"query": "x", "collections": [1]}, InvalidInput),
        ({"query": "x", "documents": ["not an id"]}, InvalidInput),
        ({"query": "x", "documents": str(uuid4())}, InvalidInput),
        ({"query": "x", "where": ["kind"]}, InvalidInput),
        ({"query": "x", "where": {1: 2}}, InvalidInput),
        ({"query": "x", "where": {"a": "b" * 70_000_000}}, TooLarge),
    ],
)
async def test_invalid_input_gets_a_clear_error(
    engine: Engine, arguments: dict[str, Any], error: type[HoldfastError]
) -> None:
    with pytest.raises(error) as raised:
        await engine.knowledge.search(**arguments)

    assert str(raised.value)


@pytest.mark.parametrize(
    "query", ["'; drop table chunk; --", "\0\ud800", "%_\\", "🦊" * 200, "的" * 3000, "a b " * 3000]
)
async def test_odd_queries_are_answered(engine: Engine, query: str) -> None:
    await store(engine, HANDBOOK, CHINESE)

    assert isinstance(await engine.knowledge.search(query), PassageHits)
