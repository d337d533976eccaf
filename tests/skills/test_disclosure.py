from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import NotFound
from holdfast.llm.tokens import ESTIMATE
from holdfast.skills.disclosure import (
    Catalog,
    KnownSkill,
    SkillGrant,
    catalog_of,
    in_load_order,
    line_of,
    list_skills,
    resolve_opening,
)
from holdfast.skills.tool import Access


def id_of(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"."))


def ids(*names: str) -> tuple[UUID, ...]:
    return tuple(map(id_of, names))


def skill(
    name: str,
    description: str = "",
    *,
    parts: Sequence[str] = (),
    requires: Sequence[str] = (),
    optional: Sequence[str] = (),
    tools: Sequence[SkillGrant] = (),
) -> KnownSkill:
    return KnownSkill(
        id_of(name), name, description, parts=ids(*parts), requires=ids(*requires), optional=ids(*optional),
        tools=tuple(tools),
    )  # fmt: skip


def grant(
    name: str, *, access: Access = "read", level: Access = "read", permissions: Mapping[str, Any] | None = None
) -> SkillGrant:
    return SkillGrant(id_of(name), name, f"Does {name}.", access, level, permissions or {}, {})


def catalog(*skills: KnownSkill, assigned: Sequence[str]) -> Catalog:
    return catalog_of("support", 1, {id_of(name): {} for name in assigned}, skills)


def names(skills: Sequence[KnownSkill]) -> list[str]:
    return [each.name for each in skills]


@pytest.mark.req("SKILL-02")
def test_at_first_only_names_and_descriptions_of_assigned_skills_are_told() -> None:
    known = catalog(
        skill("returns", "Parcels\nthat come back.", parts=["labels"], tools=[grant("print_label")]),
        skill("labels", "How labels are made."),
        skill("refunds"),
        assigned=["refunds", "returns"],
    )

    listing = list_skills(known, 1000, ESTIMATE)

    assert listing.text == "- refunds\n- returns: Parcels that come back."
    assert listing.tokens == sum(ESTIMATE.count(line + "\n") for line in listing.lines)
    assert not listing.left_out


@pytest.mark.req("SKILL-02")
def test_skills_that_have_no_room_in_the_list_are_told_apart() -> None:
    known = catalog(skill("a", "short"), skill("b", "long " * 100), skill("c", "short"), assigned=["a", "b", "c"])

    listing = list_skills(known, 20, ESTIMATE)

    assert names(listing.shown) == ["a", "c"]
    assert names(listing.left_out) == ["b"]
    assert listing.tokens <= 20


@pytest.mark.req("SKILL-02")
def test_a_skill_is_opened_after_what_it_requires_each_once() -> None:
    known = catalog(
        skill("top", requires=["left", "right"]),
        skill("left", requires=["base"]),
        skill("right", requires=["base"], optional=["extra"]),
        skill("base"),
        skill("extra"),
        assigned=["top"],
    )

    opening = resolve_opening(known, ["top", "left"])

    assert names(opening.skills) == ["base", "left", "right", "top"]


@pytest.mark.req("SKILL-01")
def test_what_is_optional_opens_only_when_asked_for() -> None:
    known = catalog(skill("top", optional=["extra"]), skill("extra"), assigned=["top"])

    assert names(resolve_opening(known, ["top"]).skills) == ["top"]
    assert names(resolve_opening(known, ["extra"]).skills) == ["extra"]
    assert known.by_name["top"].leads_to == ids("extra")


@pytest.mark.req("SKILL-01")
def test_a_skill_that_is_not_there_is_cut_off_with_what_it_alone_led_to() -> None:
    known = catalog(
        skill("top", requires=["gone"], parts=["part"]),
        skill("part", optional=["away"]),
        skill("beyond"),  # which `gone` required
        assigned=["top", "missing"],
    )

    assert set(known.by_name) == {"top", "part"}
    assert known.assigned == ids("top")
    assert names(resolve_opening(known, ["top"]).skills) == ["top"]


@pytest.mark.req("SKILL-01")
def test_what_is_opened_says_which_configs_hold_and_those_of_all_that_lead_there_do() -> None:
    strict, lax, own = {"approve": True}, {"timeout": 2}, {"timeout": 3}
    skills = [
        skill("other", requires=["both"]),
        skill("strict", requires=["both", "own"]),
        skill("lax", requires=["both"]),
        skill("both", optional=["more"]),
        skill("own"),
        skill("more"),
    ]
    assigned = {"other": {}, "strict": strict, "lax": lax, "own": own}
    known = catalog_of("support", 1, {id_of(name): config for name, config in assigned.items()}, skills)

    def configs(*names: str) -> dict[str, list[Mapping[str, Any]]]:
        found = resolve_opening(known, names).configs
        return {skill.name: [*found[skill.id]] for skill in known.skills.values() if skill.id in found}

    assert configs("other") == {}
    assert configs("strict") == {"strict": [strict, strict], "both": [strict], "own": [strict, own]}
    assert configs("other", "strict", "lax")["both"] == [strict, lax]
    assert configs("both") == {"both": [lax, strict]}
    assert configs("more") == {"more": [lax, strict]}


@pytest.mark.req("SKILL-07")
def test_a_tool_that_may_not_be_called_is_not_disclosed_and_the_reason_is_kept() -> None:
    known = catalog(
        skill(
            "returns",
            tools=[
                grant("look"),
                grant("refund", access="execute", level="read"),
                grant("delete", permissions={"agents": {"support": "none"}}),
            ],
        ),
        assigned=["returns"],
    )

    opening = resolve_opening(known, ["returns"])

    assert list(opening.tools) == ["look"]
    assert opening.refused.keys() == {"refund", "delete"}
    assert "the skill grants only read" in opening.refused["refund"]
    assert known.tool_ids == {id_of("look")}


@pytest.mark.req("SKILL-07")
def test_a_tool_that_one_skill_does_not_give_may_come_by_another() -> None:
    known = catalog(
        skill("read", tools=[grant("refund", access="execute", level="read")]),
        skill("act", tools=[grant("refund", access="execute", level="execute")]),
        assigned=["read", "act"],
    )

    opening = resolve_opening(known, ["read", "act"])

    assert opening.tools["refund"][1].name == "act"
    assert not opening.refused


@pytest.mark.req("SKILL-02")
def test_a_skill_that_an_agent_cannot_use_is_told_with_those_of_like_names() -> None:
    known = catalog(skill("returns"), skill("billing"), assigned=["returns", "billing"])

    with pytest.raises(NotFound, match=r"support has no skill 'return'.*returns"):
        resolve_opening(known, ["return"])


@pytest.mark.req("SKILL-01")
def test_even_a_circle_that_plain_sql_made_opens_each_skill_once() -> None:
    known = catalog(skill("a", requires=["b"]), skill("b", requires=["c"]), skill("c", requires=["a"]), assigned=["a"])

    assert sorted(names(resolve_opening(known, ["a"]).skills)) == ["a", "b", "c"]


@pytest.mark.req("SKILL-02")
def test_a_chain_of_ten_thousand_skills_opens() -> None:
    chain = [f"{n:05}" for n in range(10_000)]
    skills = [skill(one, requires=[next]) for one, next in pairwise(chain)] + [skill(chain[-1])]

    opening = resolve_opening(catalog(*skills, assigned=[chain[0]]), [chain[0]])

    assert names(opening.skills) == chain[::-1]


@given(st.lists(st.sets(st.integers(0, 11)), min_size=12, max_size=12), st.lists(st.integers(0, 11), max_size=4))
@pytest.mark.req("SKILL-02")
def test_whatever_requires_whatever_what_is_required_stands_before(needs: list[set[int]], asked: list[int]) -> None:
    # Each requires some that come after it: any graph without circles, but for the names.
    skills = [
        skill(f"{n:02}", requires=[f"{other:02}" for other in sorted(some) if other > n])
        for n, some in enumerate(needs)
    ]
    known = catalog(*skills, assigned=[each.name for each in skills])

    ordered = names(in_load_order(known, ids(*(f"{n:02}" for n in asked))))

    assert len(ordered) == len(set(ordered))
    assert {f"{n:02}" for n in asked} <= set(ordered)
    for name in ordered:
        required = [known.skills[id].name for id in known.by_name[name].requires]
        assert all(ordered.index(each) < ordered.index(name) for each in required)


@pytest.mark.req("SKILL-02")
def test_no_description_begins_a_line_of_its_own() -> None:
    assert line_of("a", " two\n\n- b: lines ") == "- a: two - b: lines"
