from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine
from holdfast.memory import Memories, Owner, agent, organization, session, user
from tests.clock import Clock

ANN = user("ann")
OWNERS = (session("web"), ANN, agent("support"), organization())
MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)


async def fill(memories: Memories, count: int) -> None:
    for owner in OWNERS:
        await memories.remember_many(owner, [f"parcel {number} of {owner.scope}" for number in range(count)])


@pytest.mark.req("MEM-03")
async def test_the_context_has_ten_of_the_session_five_of_the_user_three_of_the_agent_and_five_of_all(
    words_only: Engine,
) -> None:
    await fill(words_only.memory, 12)

    hits = await words_only.memory.context("parcel", session="web", user="ann", agent="support")

    assert Counter(hit.memory.owner.scope for hit in hits) == {"session": 10, "user": 5, "agent": 3, "organization": 5}
    assert {(hit.memory.owner.scope, hit.memory.owner.name) for hit in hits} == {
        ("session", "web"), ("user", "ann"), ("agent", "support"), ("organization", "")
    }  # fmt: skip


@pytest.mark.req("MEM-03")
async def test_the_context_is_one_ranking_by_score(memories: Memories) -> None:
    await memories.remember(organization(), "Parcels to Norway take five days")
    await memories.remember(ANN, "Ann's parcel goes to Norway")
    await memories.remember(agent("support"), "Ask for the parcel number first")
    await memories.remember(session("web"), "The weather is fine")

    hits = await memories.context("How long do parcels to Norway take?", session="web", user="ann", agent="support")

    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].memory.content == "Parcels to Norway take five days"
    assert hits[-1].memory.content == "The weather is fine"


@pytest.mark.req("MEM-03")
async def test_a_score_is_the_same_alone_and_in_the_context(memories: Memories, clock: Clock) -> None:
    await clock.stop()
    await fill(memories, 3)

    alone = {hit.memory.id: hit.score for owner in OWNERS for hit in await memories.search(owner, "parcel 2")}
    together = await memories.context("parcel 2", session="web", user="ann", agent="support")

    assert {hit.memory.id: hit.score for hit in together} == pytest.approx(alone, abs=1e-9)


@pytest.mark.req("MEM-03")
async def test_limits_can_be_given_for_each_scope_and_who_is_not_named_is_not_asked(words_only: Engine) -> None:
    await fill(words_only.memory, 4)

    limited = await words_only.memory.context("parcel", session="web", user="ann", limits={"session": 0, "user": 1})
    nobody = await words_only.memory.context("parcel")

    assert Counter(hit.memory.owner.scope for hit in limited) == {"user": 1, "organization": 4}
    assert Counter(hit.memory.owner.scope for hit in nobody) == {"organization": 4}


@pytest.mark.req("MEM-03")
async def test_metadata_narrow_by_containment(words_only: Engine) -> None:
    told: dict[str, Mapping[str, Any]] = {
        "a": {"order": {"id": 7, "open": True}, "tags": ["late", "gift"]},
        "b": {"order": {"id": 7}},
        "c": {"order": {"id": "7"}},
        "d": {},
    }
    for letter, metadata in told.items():
        await words_only.memory.remember(ANN, f"parcel {letter}", metadata=metadata)

    async def found(where: Mapping[str, Any]) -> str:
        hits = await words_only.memory.search(ANN, "parcel", where=where)
        return "".join(sorted(hit.memory.content[-1] for hit in hits))

    assert await found({}) == "abcd"
    assert await found({"order": {"id": 7}}) == "ab"
    assert await found({"order": {"id": 7, "open": True}}) == "a"
    assert await found({"tags": ["gift"]}) == "a"
    assert await found({"order": {"id": "7"}}) == "c"
    assert await found({"order": 7}) == ""


@pytest.mark.req("MEM-03")
async def test_types_and_times_narrow_a_search(words_only: Engine) -> None:
    await words_only.memory.remember(ANN, "parcel before", at=datetime(2026, 2, 28, 23, 59, tzinfo=UTC))
    await words_only.memory.remember(ANN, "parcel of March", at=MARCH, type="event")
    await words_only.memory.remember(ANN, "parcel of April", at=APRIL)
    await words_only.memory.remember(ANN, "parcel of today")

    async def found(**filters: Any) -> list[str]:
        hits = await words_only.memory.search(ANN, "parcel", **filters)
        return sorted(hit.memory.content.removeprefix("parcel ") for hit in hits)

    assert await found(types=["event"]) == ["of March"]
    assert await found(types=["event", "fact"], since=MARCH, until=APRIL) == ["of March"]
    assert await found(since=APRIL) == ["of April", "of today"]
    assert await found(until=MARCH) == ["before"]
    assert await found(types=[]) == []


@pytest.mark.req("MEM-03")
async def test_what_an_agent_brought_in_can_be_asked_for_alone(words_only: Engine) -> None:
    await words_only.memory.remember(user("ann", agent="support"), "parcel seen by support")
    await words_only.memory.remember(user("ann", agent="sales"), "parcel seen by sales")

    every = await words_only.memory.search(ANN, "parcel")
    one = await words_only.memory.search(user("ann", agent="sales"), "parcel")

    assert len(every) == 2
    assert [hit.memory.owner for hit in one] == [user("ann", agent="sales")]


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.scope)
async def test_a_scope_without_memories_has_no_hits(words_only: Engine, owner: Owner) -> None:
    assert await words_only.memory.search(owner, "parcel") == []


@pytest.mark.req("MEM-03")
async def test_texts_of_several_owners_are_remembered_at_once_each_where_it_belongs(words_only: Engine) -> None:
    drafts = [(owner, f"parcel of {owner.scope}") for owner in OWNERS]

    stored = await words_only.memory.remember_all([*drafts, drafts[0]])

    assert [(each.owner.scope, each.content) for each in stored[:4]] == [(owner.scope, text) for owner, text in drafts]
    assert stored[4].id == stored[0].id
    hits = await words_only.memory.context("parcel", session="web", user="ann", agent="support")
    assert {(hit.memory.owner.scope, hit.memory.content) for hit in hits} == {
        (owner.scope, text) for owner, text in drafts
    }


@pytest.mark.req("MEM-03")
async def test_of_texts_of_several_owners_none_is_remembered_if_one_cannot_be(words_only: Engine) -> None:
    with pytest.raises(InvalidInput):
        await words_only.memory.remember_all([(session("web"), "parcel"), (ANN, {"content": "parcel", "ttl": -1})])

    assert not await words_only.memory.context("parcel", session="web", user="ann")
