import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.embeddings.store import Store
from holdfast.engine import Engine
from holdfast.postgres.database import OwnerConnection
from holdfast.skills import registry_indexer
from holdfast.skills.catalog import Catalogs
from holdfast.skills.registry_indexer import RegistryIndexer, text_of
from holdfast.skills.registry_terms import in_name, terms_of
from holdfast.skills.search import RegistrySearch, SearchResult
from holdfast.skills.skills import Skills
from holdfast.skills.tools import Tools
from tests.embeddings.models import CHINESE, ENGLISH

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
SHOP = {
    "get_customers_by_id": "Returns one customer with address and contact details.",
    "listOverdueInvoices": "Lists bills that were not paid in time.",
    "send_email": "Sends a message to an address.",
    "refund_payment": "Gives money back to the buyer.",
    "track_parcel": "Where a shipment is right now.",
    "查询天气": "查询某个城市今天的天气预报。",
}
BY_SQL = """
insert into tool_t (host_id, name, description, implementation_type)
select $1, 'tool_' || n, 'Rotates the carousel number ' || n || '.', 'function' from generate_series(1, 5) n
"""


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own indexer stays out of the way."""
    monkeypatch.setattr(registry_indexer, "FIRST", 3600)


@pytest.fixture
def finding(words_only: Engine) -> RegistrySearch:
    """Finds in the tenant `default`, by words alone."""
    return finding_of(words_only)


@pytest.fixture
async def shop(words_only: Engine, skills: Skills) -> Engine:
    """A shop of tools, and the skills that two of them belong to."""
    await fill(words_only)
    return words_only


@pytest.fixture
async def embedded(engine: Engine, models: Store) -> Engine:
    """The same, embedded."""
    assert models.find(ENGLISH)
    await fill(engine)
    await RegistryIndexer(engine.postgres, engine.embeddings).catch_up()
    return engine


def finding_of(engine: Engine) -> RegistrySearch:
    return RegistrySearch(engine.database, engine.embeddings, Catalogs(engine.database, Tools(engine.database)))


async def fill(engine: Engine) -> None:
    tools = Tools(engine.database)
    skills = Skills(engine.database, tools)
    for name, description in SHOP.items():
        if name.isascii():
            await tools.put(name, description=description, parameters=NOTHING, kind="function", reference="shop:it")
    await tools.put("weather", description=SHOP["查询天气"], parameters=NOTHING, kind="function", reference="shop:it")
    await skills.put("billing", description="Invoices and payments.", instructions="Be exact.")
    await skills.put("shipping", description="Parcels on their way.", instructions="Be quick.")
    await skills.link("billing", "refund_payment")
    await skills.link("shipping", "track_parcel")


def names(found: Sequence[SearchResult]) -> list[str]:
    return [each.name for each in found]


@pytest.mark.req("SKILL-04")
async def test_a_tool_is_found_by_the_parts_of_its_name_as_soon_as_it_is_written(
    shop: Engine, finding: RegistrySearch
) -> None:
    assert names(await finding.search("customer"))[0] == "get_customers_by_id"
    assert names(await finding.search("overdue invoice", kinds=["tool"]))[0] == "listOverdueInvoices"
    assert names(await finding.search("LISTOVERDUEINVOICES"))[0] == "listOverdueInvoices"


@pytest.mark.req("SKILL-04")
async def test_skills_and_tools_are_found_together_and_a_tool_names_its_skill(
    shop: Engine, finding: RegistrySearch
) -> None:
    found = await finding.search("payment")

    assert {(each.kind, each.name, each.skill) for each in found} == {
        ("tool", "refund_payment", "billing"),
        ("skill", "billing", None),
    }
    assert names(await finding.search("payment", kinds=["skill"])) == ["billing"]


@pytest.mark.req("SKILL-04")
async def test_a_word_of_the_name_counts_more_than_one_of_the_description(
    shop: Engine, finding: RegistrySearch
) -> None:
    tools = Tools(shop.database)
    await tools.put(
        "ring", description="Tells the postman of a parcel.", parameters=NOTHING, kind="java", reference="B"
    )

    found = await finding.search("parcel", kinds=["tool"], explain=True)

    assert names(found) == ["track_parcel", "ring"]
    assert [each.parts is not None and each.parts.name > 0 for each in found] == [True, False]
    assert all(each.parts and each.score == pytest.approx(each.parts.words + each.parts.name) for each in found)


@pytest.mark.req("SKILL-04")
async def test_a_rare_word_counts_more_than_a_common_one(shop: Engine, finding: RegistrySearch) -> None:
    tools = Tools(shop.database)
    for n in range(20):
        await tools.put(f"report_{n}", description="Makes a report.", parameters=NOTHING, kind="java", reference="B")
    await tools.put("yearly", description="Sums up the year.", parameters=NOTHING, kind="java", reference="B")

    found = await finding.search("report of the year", kinds=["tool"], limit=3)

    assert names(found)[0] == "yearly"


@pytest.mark.req("SKILL-04")
async def test_without_a_model_the_answer_says_that_it_is_by_words_only(shop: Engine, finding: RegistrySearch) -> None:
    found = await finding.search("customer")

    assert found
    assert "by words only" in found.reduced


@pytest.mark.req("SKILL-04")
async def test_a_chinese_description_is_found_by_its_characters(shop: Engine, finding: RegistrySearch) -> None:
    assert names(await finding.search("天气怎么样"))[0] == "weather"


@pytest.mark.req("SKILL-04")
async def test_what_is_not_active_is_not_found(
    shop: Engine, finding: RegistrySearch, skills: Skills, tools: Tools
) -> None:
    await tools.activate("refund_payment", False)
    await skills.activate("billing", False)

    assert not await finding.search("payment")


@pytest.mark.req("SKILL-04")
async def test_what_is_changed_is_found_by_its_new_words_and_what_is_removed_not_at_all(
    shop: Engine, finding: RegistrySearch, skills: Skills, tools: Tools, owner: OwnerConnection
) -> None:
    version = (await tools.get("send_email")).version
    await tools.put(
        "send_email",
        description="Posts a letter.",
        parameters=NOTHING,
        kind="function",
        reference="shop:it",
        version=version,
    )
    await tools.remove("track_parcel")
    await skills.remove("shipping")

    assert names(await finding.search("letter")) == ["send_email"]
    assert not await finding.search("message")
    assert not await finding.search("parcel")
    left = await owner.all(
        "select id from registry_term except select tool_id from tool_t except select skill_id from skill_t"
    )
    assert not left


@pytest.mark.req("SKILL-04")
async def test_an_agent_finds_only_what_it_can_come_to_use(
    shop: Engine, finding: RegistrySearch, skills: Skills
) -> None:
    await shop.definitions.put("support", instructions="Help.")
    await shop.definitions.put("guest", instructions="Look.")
    await skills.put("all", instructions="everything", description="Payments, parcels and customers.")
    await skills.link("all", "refund_payment", access="read")  # which takes more
    await skills.link("all", "get_customers_by_id")
    await skills.assign("support", "all")

    found = await finding.search("customer payment parcel", agent="support")

    assert {(each.name, each.skill) for each in found} == {("all", None), ("get_customers_by_id", "all")}
    assert not await finding.search("customer payment parcel", agent="guest")


@pytest.mark.req("SKILL-04")
async def test_another_tenants_skills_and_tools_are_not_found(shop: Engine, acme: Engine) -> None:
    assert not await finding_of(acme).search("customer")


@pytest.mark.req("SKILL-04")
@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {}),
        (" \n", {}),
        ("x" * 20_001, {}),
        ("x", {"kinds": []}),
        ("x", {"kinds": ["agent"]}),
        ("x", {"limit": 0}),
        ("x", {"limit": 101}),
        ("x", {"limit": True}),
    ],
)
async def test_a_question_that_cannot_be_asked_is_refused(
    finding: RegistrySearch, query: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        await finding.search(query, **options)


@pytest.mark.req("SKILL-04")
@pytest.mark.parametrize("query", ["'; drop table tool_t; --", "\0\ud800", "%_", "🙂" * 500, "the of and"])
async def test_any_text_can_be_asked(shop: Engine, finding: RegistrySearch, query: str) -> None:
    assert len(await finding.search(query)) <= 10


@pytest.mark.req("SKILL-04")
async def test_what_came_by_plain_sql_is_found_once_it_is_indexed(shop: Engine, finding: RegistrySearch) -> None:
    await shop.database.run(BY_SQL)
    before = await finding.search("carousel")

    done = await RegistryIndexer(shop.postgres, shop.embeddings).catch_up()

    assert not before
    assert done == 5
    assert len(await finding.search("carousel")) == 5


@pytest.mark.req("SKILL-04")
async def test_what_plain_sql_removed_hides_nothing_else(
    shop: Engine, finding: RegistrySearch, owner: OwnerConnection
) -> None:
    await shop.database.run(BY_SQL.replace("(1, 5)", "(1, 300)"))
    await RegistryIndexer(shop.postgres, shop.embeddings).catch_up()
    await Tools(shop.database).put("carousel", description="", parameters=NOTHING, kind="java", reference="B")
    await owner.run("delete from tool_t where name <> 'carousel'")

    found = await finding.search("rotates the carousel number 7")

    assert names(found) == ["carousel"]
    assert await owner.value("select count(distinct id) from registry_term where kind = 'tool'") == 1


@pytest.mark.req("SKILL-04")
async def test_tools_are_found_by_meaning(embedded: Engine) -> None:
    finding = finding_of(embedded)

    found = await finding.search("where is my package?", explain=True)
    money = await finding.search("reimburse a client", kinds=["tool"])

    assert names(found)[0] == "track_parcel"
    assert found[0].parts is not None
    assert found[0].parts.vector > 0
    assert not found.reduced
    assert names(money)[0] == "refund_payment"


@pytest.mark.req("SKILL-04")
async def test_each_language_is_found_by_its_own_model_and_by_english(embedded: Engine, owner: OwnerConnection) -> None:
    finding = finding_of(embedded)

    found = await finding.search("会下雨吗?", explain=True)
    english = await finding.search("will it rain?", kinds=["tool"])

    assert names(found)[0] == names(english)[0] == "weather"
    assert found[0].parts is not None
    assert found[0].parts.vector > 0
    rows = await owner.all("select embedded, description_embedding is null as short, name from tool_t")
    assert {row["name"]: (row["embedded"], row["short"]) for row in rows}.items() >= {
        "weather": (CHINESE, True),  # whose vectors have another length
        "send_email": (ENGLISH, False),
    }.items()


@pytest.mark.req("SKILL-04")
async def test_what_says_something_else_is_embedded_anew(embedded: Engine) -> None:
    tools, finding = Tools(embedded.database), finding_of(embedded)
    entry = await tools.get("send_email")

    await tools.put(
        "send_email", description="Plays a melody.", parameters=NOTHING, kind="function", reference="shop:it",
        version=entry.version,
    )  # fmt: skip
    stale = await finding.search("music", kinds=["tool"], explain=True, limit=20)
    done = await RegistryIndexer(embedded.postgres, embedded.embeddings).catch_up()
    found = await finding.search("music", kinds=["tool"], explain=True)

    assert "send_email" not in names(stale)
    assert done == 1
    assert names(found)[0] == "send_email"


@pytest.mark.req("SKILL-04")
async def test_what_was_changed_while_it_was_embedded_is_not_given_the_old_vector(
    embedded: Engine, monkeypatch: pytest.MonkeyPatch, owner: OwnerConnection
) -> None:
    await owner.run("update tool_t set embedded = null where name = 'send_email'")
    embed = embedded.embeddings.vectors

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        await owner.run("update tool_t set description = 'Sings.', terms = null where name = 'send_email'")
        return await embed(texts, languages)

    monkeypatch.setattr(embedded.embeddings, "vectors", vectors)
    indexer = RegistryIndexer(embedded.postgres, embedded.embeddings)

    await indexer.catch_up()
    kept = await owner.value("select embedded from tool_t where name = 'send_email'")
    monkeypatch.setattr(embedded.embeddings, "vectors", embed)
    await indexer.catch_up()

    assert kept is None
    assert names(await finding_of(embedded).search("sing a song", kinds=["tool"]))[0] == "send_email"


@pytest.mark.req("SKILL-04")
async def test_one_process_at_a_time_indexes_a_tenant(embedded: Engine, owner: OwnerConnection) -> None:
    await embedded.database.run(BY_SQL)
    first = RegistryIndexer(embedded.postgres, embedded.embeddings)
    second = RegistryIndexer(embedded.postgres, embedded.embeddings)

    done = await asyncio.gather(first.catch_up(), second.catch_up())

    assert sum(done) == 10  # the words of five, and then their vectors
    assert await owner.value("select count(*) from registry_indexing") == 0
    assert await first.catch_up() == await second.catch_up() == 0


@pytest.mark.req("SKILL-04")
async def test_a_text_that_the_model_refuses_keeps_no_other_from_being_embedded(
    embedded: Engine, monkeypatch: pytest.MonkeyPatch, owner: OwnerConnection
) -> None:
    await embedded.database.run(BY_SQL)
    embed = embedded.embeddings.vectors

    async def vectors(texts: Sequence[str], languages: Sequence[Language]) -> list[Vector | None]:
        found = await embed(texts, languages)
        return [None if "number 3." in text else vector for text, vector in zip(texts, found, strict=True)]

    monkeypatch.setattr(embedded.embeddings, "vectors", vectors)
    monkeypatch.setattr(registry_indexer, "TOGETHER", 2)

    async with asyncio.timeout(30):
        await RegistryIndexer(embedded.postgres, embedded.embeddings).catch_up()

    left = await owner.all("select name from tool_t where embedded is null")
    assert [row["name"] for row in left] == ["tool_3"]


@pytest.mark.req("SKILL-04")
async def test_the_indexer_wakes_when_the_registry_changes(
    engine: Engine, models: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models.find(ENGLISH)
    monkeypatch.setattr(registry_indexer, "FIRST", 0)
    monkeypatch.setattr(registry_indexer, "GATHER", 0)
    tools, finding = Tools(engine.database), finding_of(engine)

    async with asyncio.timeout(30), RegistryIndexer(engine.postgres, engine.embeddings):
        await tools.put("a", description="Plays a melody.", parameters=NOTHING, kind="java", reference="B")
        while not await finding.search("music", kinds=["tool"]):
            pass


@pytest.mark.req("SKILL-04")
def test_a_name_is_embedded_in_words() -> None:
    assert text_of("get_customers_by_id", "Returns one.") == "get customers by id: Returns one."
    assert text_of("listOverdueInvoices", "") == "list Overdue Invoices"


@pytest.mark.req("SKILL-04")
def test_words_of_names_are_kept_twice() -> None:
    both, described = set(terms_of("send_mail", "")), set(terms_of("", "send mail"))

    assert described < both
    assert in_name("send") in both - described
