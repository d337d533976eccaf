import asyncio
from typing import Any
from uuid import UUID

import pytest

from holdfast.conversations import Conversation
from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.llm.tokens import ESTIMATE
from holdfast.postgres.database import Database, OwnerConnection
from holdfast.skills import catalog as catalogs_module
from holdfast.skills.catalog import Catalogs
from holdfast.skills.skills import Skills
from holdfast.skills.tools import Tools

PARCEL = {"type": "object", "properties": {"parcel": {"type": "string"}, "region": {"type": "string"}}}


class Counted:
    """A database that counts the statements that it is asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked: list[str] = []

    def one(self, statement: str, *args: object) -> Any:
        self.asked.append(statement)
        return self._database.one(statement, *args)


@pytest.fixture
def catalogs(words_only: Engine, tools: Tools) -> Catalogs:
    """The catalogues of the tenant `default`."""
    return Catalogs(words_only.database, tools)


@pytest.fixture
async def shop(words_only: Engine, skills: Skills, tools: Tools) -> Engine:
    """An agent `support` with the skills `returns`, which requires `labels`, and `refunds`, each with a tool."""
    await words_only.definitions.put("support", instructions="Help.")
    for name in ("track", "print_label", "refund"):
        await tools.put(name, description=f"Does {name}.", parameters=PARCEL, kind="function", reference="shop:it")
    for name, tool in (("returns", "track"), ("labels", "print_label"), ("refunds", "refund")):
        await skills.put(name, description=f"About {name}.", instructions=f"# {name}\nDo it well.")
        await skills.link(name, tool)
    await skills.depend("returns", "labels")
    await skills.assign("support", "returns", sequence=2)
    await skills.assign("support", "refunds", sequence=1)
    return words_only


@pytest.fixture
async def talk(words_only: Engine) -> Conversation:
    """A conversation in which nothing was said yet."""
    return await words_only.conversations.create(app="shop", user="ann", agent="support")


def names(catalogs: Any) -> list[str]:
    return [skill.name for skill in catalogs]


@pytest.mark.req("SKILL-01")
async def test_the_skills_of_an_agent_stand_by_priority_then_sequence_then_name(
    shop: Engine, skills: Skills, catalogs: Catalogs
) -> None:
    for name, priority, sequence in (("zeal", 5, 9), ("b", 0, 2), ("a", 0, 2)):
        await skills.put(name, instructions="do")
        await skills.assign("support", name, priority=priority, sequence=sequence)

    catalog = await catalogs.of("support")

    assert names(catalog.skills[id] for id in catalog.assigned) == ["zeal", "refunds", "a", "b", "returns"]


@pytest.mark.req("SKILL-01")
async def test_an_agent_reaches_parts_and_needs_of_its_skills_and_nothing_else(
    shop: Engine, skills: Skills, catalogs: Catalogs
) -> None:
    await skills.put("stickers", instructions="stick", parent="labels")
    await skills.put("round_stickers", instructions="stick", parent="stickers")
    await skills.put("glue", instructions="glue")
    await skills.put("secret", instructions="none of its business")
    await skills.depend("round_stickers", "glue", required=False)

    catalog = await catalogs.of("support")

    assert set(catalog.by_name) == {"returns", "refunds", "labels", "stickers", "round_stickers", "glue"}
    assert names(catalog.skills[id] for id in catalog.by_name["labels"].leads_to) == ["stickers"]
    assert not (await catalogs.of("nobody")).skills


@pytest.mark.req("SKILL-01")
async def test_what_is_not_active_is_cut_off(shop: Engine, skills: Skills, tools: Tools, catalogs: Catalogs) -> None:
    await skills.activate("labels", False)
    await tools.activate("refund", False)
    await skills.link("returns", "print_label", active=False)

    catalog = await catalogs.of("support")

    assert set(catalog.by_name) == {"returns", "refunds"}
    assert [grant.name for skill in catalog.skills.values() for grant in skill.tools] == ["track"]


@pytest.mark.req("SKILL-02")
async def test_opening_a_skill_brings_instructions_and_tools_of_all_that_it_requires(
    shop: Engine, catalogs: Catalogs
) -> None:
    opened = await catalogs.open("support", ["returns"])

    assert [(skill.name, skill.instructions) for skill in opened.skills] == [
        ("labels", "# labels\nDo it well."),
        ("returns", "# returns\nDo it well."),
    ]
    assert {spec.name: spec.parameters for spec in opened.specs} == {"print_label": PARCEL, "track": PARCEL}
    assert opened.disclosed["track"].tool.id is not None


@pytest.mark.req("SKILL-02")
async def test_a_skill_of_another_agent_cannot_be_opened(shop: Engine, skills: Skills, catalogs: Catalogs) -> None:
    await skills.put("accounting", instructions="count")

    with pytest.raises(NotFound, match="support has no skill 'accounting'"):
        await catalogs.open("support", ["accounting"])


@pytest.mark.req("SKILL-07")
async def test_a_tool_that_the_agent_may_not_call_is_not_disclosed(
    shop: Engine, skills: Skills, tools: Tools, catalogs: Catalogs
) -> None:
    await skills.link("refunds", "refund", access="read")
    await tools.permit("track", {"agents": {"support": "none"}})

    opened = await catalogs.open("support", ["refunds", "returns"])

    assert list(opened.disclosed) == ["print_label"]
    assert opened.refused.keys() == {"refund", "track"}


@pytest.mark.req("SKILL-01")
async def test_the_agents_config_overlays_that_of_the_skill_also_in_what_the_skill_requires(
    shop: Engine, skills: Skills, catalogs: Catalogs
) -> None:
    await skills.link("labels", "print_label", config={"arguments": {"region": "eu"}, "timeout": 9})
    await skills.assign("support", "returns", config={"arguments": {"region": "us"}}, sequence=2)

    opened = await catalogs.open("support", ["returns"])

    offer = opened.disclosed["print_label"]
    assert offer.overlay.apply({"parcel": "7", "region": "cn"}) == {"parcel": "7", "region": "us"}
    assert offer.shown.timeout == 9
    assert list(offer.spec.parameters["properties"]) == ["parcel"]


@pytest.mark.req("SKILL-02")
async def test_a_loaded_skill_stays_loaded_in_its_conversation_and_for_its_agent(
    shop: Engine, talk: Conversation, catalogs: Catalogs, tools: Tools
) -> None:
    await shop.definitions.put("other", instructions="Help, too.")
    await catalogs.open("support", ["refunds"], conversation=talk.id)
    await catalogs.open("support", ["returns"], conversation=talk.id)
    await catalogs.open("support", ["refunds"], conversation=talk.id)

    _, loaded = await Catalogs(shop.database, tools).loaded("support", talk.id)
    _, elsewhere = await catalogs.loaded("support", UUID(int=7))
    _, others = await catalogs.loaded("other", talk.id)

    assert names(loaded.skills) == ["labels", "returns", "refunds"]  # the newest last
    assert set(loaded.disclosed) == {"refund", "print_label", "track"}
    assert not elsewhere.skills
    assert not others.skills


@pytest.mark.req("SKILL-02")
async def test_what_was_loaded_is_gone_with_the_conversation_or_the_skill_or_the_assignment(
    shop: Engine, talk: Conversation, skills: Skills, catalogs: Catalogs, owner: OwnerConnection
) -> None:
    await catalogs.open("support", ["refunds", "returns"], conversation=talk.id)

    await skills.unassign("support", "returns")
    _, unassigned = await catalogs.loaded("support", talk.id)
    await skills.remove("refunds")
    _, removed = await catalogs.loaded("support", talk.id)
    await shop.conversations.remove(talk.id)

    assert names(unassigned.skills) == ["refunds"]
    assert not removed.skills
    assert await owner.value("select count(*) from conversation_skill") == 0


@pytest.mark.req("SKILL-02")
async def test_what_is_kept_is_read_again_as_soon_as_the_registry_changes(
    shop: Engine, talk: Conversation, skills: Skills, catalogs: Catalogs
) -> None:
    await catalogs.open("support", ["refunds"], conversation=talk.id)
    before = await catalogs.loaded("support", talk.id)
    version = (await skills.get("refunds")).version

    await skills.put("refunds", instructions="Never.", description="Changed.", version=version)
    catalog, loaded = await catalogs.loaded("support", talk.id)
    opened = await catalogs.open("support", ["refunds"])

    assert before[1].skills[0].instructions == "# refunds\nDo it well."
    assert loaded.skills[0].instructions == opened.skills[0].instructions == "Never."
    assert catalog.by_name["refunds"].description == "Changed."


@pytest.mark.req("SKILL-01")
async def test_what_plain_sql_wrote_is_seen_in_time(
    shop: Engine, catalogs: Catalogs, owner: OwnerConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await catalogs.of("support")
    await owner.run("update skill_t set description = 'By SQL.' where name = $1", "returns")

    still = await catalogs.of("support")
    monkeypatch.setattr(catalogs_module, "KNOWN_FOR", 0)
    anew = await catalogs.of("support")

    assert still is kept
    assert anew.by_name["returns"].description == "By SQL."


@pytest.mark.req("SKILL-02")
async def test_a_turn_asks_one_short_statement_and_opening_takes_one_round_trip(
    shop: Engine, talk: Conversation, tools: Tools
) -> None:
    database = Counted(shop.database)
    catalogs = Catalogs(database, tools)  # pyright: ignore[reportArgumentType]
    await catalogs.open("support", ["returns"], conversation=talk.id)
    await catalogs.loaded("support", talk.id)

    database.asked.clear()
    await catalogs.loaded("support", talk.id)
    of_a_turn = len(database.asked)
    await catalogs.open("support", ["refunds"], conversation=talk.id)

    assert of_a_turn == 1
    assert len(database.asked) == 2


@pytest.mark.req("SKILL-02")
async def test_all_that_an_agent_could_load_is_counted_once_for_a_revision(
    shop: Engine, skills: Skills, catalogs: Catalogs
) -> None:
    opened = await catalogs.open("support", ["returns", "refunds"])
    texts = [skill.instructions for skill in opened.skills] + [spec.to_json() for spec in opened.specs]

    tokens = await asyncio.gather(*(catalogs.count_tokens("support", ESTIMATE) for _ in range(5)))
    await skills.unassign("support", "refunds")
    await catalogs.of("support")
    fewer = await catalogs.count_tokens("support", ESTIMATE)

    assert set(tokens) == {sum(map(ESTIMATE.count, texts))}
    assert 0 < fewer < tokens[0]


@pytest.mark.req("SKILL-02")
async def test_what_has_not_changed_is_not_counted_again_nor_known_by_another_catalogue(
    shop: Engine, tools: Tools, skills: Skills, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []

    class Counter:
        name = "noting"

        def count(self, text: str) -> int:
            counted.append(text)
            return 1

    catalogs = Catalogs(shop.database, tools)
    before = await catalogs.of("support")
    whole = await catalogs.count_tokens("support", Counter())
    texts = len(counted)
    monkeypatch.setattr(catalogs_module, "KNOWN_FOR", 0)
    assert await catalogs.of("support") is before

    refunds = await skills.get("refunds")
    counted.clear()
    await skills.put("refunds", instructions="Never.", version=refunds.version)
    await catalogs.of("support")
    again = await catalogs.count_tokens("support", Counter())

    assert "Never." in counted
    assert 0 < len(counted) < texts
    assert again == whole


@pytest.mark.req("SKILL-01")
async def test_another_tenant_has_a_catalogue_of_its_own(shop: Engine, acme: Engine) -> None:
    await acme.definitions.put("support", instructions="Help.")
    theirs = Catalogs(acme.database, Tools(acme.database))

    assert not (await theirs.of("support")).skills
    with pytest.raises(NotFound):
        await theirs.open("support", ["returns"])


@pytest.mark.req("SKILL-06")
async def test_what_two_skills_require_is_called_as_the_one_that_was_opened_says(
    shop: Engine, skills: Skills, catalogs: Catalogs
) -> None:
    for name in ("other", "strict"):
        await skills.put(name, instructions="do")
        await skills.depend(name, "labels")
    await skills.assign("support", "other", sequence=3)
    await skills.assign("support", "strict", sequence=4, config={"approve": True, "arguments": {"region": "eu"}})

    strict = (await catalogs.open("support", ["strict"])).disclosed["print_label"]
    both = (await catalogs.open("support", ["other", "strict"])).disclosed["print_label"]
    other = (await catalogs.open("support", ["other"])).disclosed["print_label"]

    assert (strict.tool.approve, strict.overlay.fixed) == (True, {"region": "eu"})
    assert (both.tool.approve, both.overlay.fixed) == (True, {"region": "eu"})
    assert (other.tool.approve, other.overlay.fixed) == (False, {})


@pytest.mark.req("SKILL-06")
async def test_a_tool_whose_fixed_arguments_do_not_fit_is_not_disclosed(
    shop: Engine, catalogs: Catalogs, owner: OwnerConnection
) -> None:
    await owner.script("""update agent_skill_t set config = '{"arguments": {"region": 7}}'""")

    opened = await catalogs.open("support", ["refunds"])

    assert not opened.disclosed
    assert "`arguments.region` does not match" in opened.refused["refund"]


@pytest.mark.req("SKILL-02")
async def test_a_skill_that_plain_sql_switched_off_cannot_be_opened(
    shop: Engine, catalogs: Catalogs, owner: OwnerConnection, talk: Conversation
) -> None:
    await catalogs.of("support")
    await owner.script("update skill_t set active = false where name = 'refunds'")

    with pytest.raises(NotFound, match="support has no skill 'refunds'"):
        await catalogs.open("support", ["refunds"], conversation=talk.id)

    assert (await catalogs.loaded("support", talk.id))[1].skills == ()


@pytest.mark.req("SKILL-02")
async def test_that_a_required_skill_cannot_be_used_is_told(shop: Engine, skills: Skills, catalogs: Catalogs) -> None:
    await skills.activate("labels", False)

    [opened] = (await catalogs.open("support", ["returns"])).skills

    assert opened.instructions.endswith("(It requires labels, which is not available now.)")
