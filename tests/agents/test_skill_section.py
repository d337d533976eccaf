"""What of skills stands in a prompt: names, what is loaded as far as it fits, and what is said of the rest."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from holdfast.agents.prompt_sections import AgentSkills, LoadedSkill, SkillSection, fit, skill_section
from holdfast.llm.model import ToolSpec
from holdfast.skills.disclosure import Catalog, KnownSkill, SkillGrant
from tests.agents.talks import Characters

pytestmark = pytest.mark.req("SKILL-02")


def spec(name: str, size: int = 100) -> ToolSpec:
    """A tool that takes so many characters to tell."""
    bare = ToolSpec(name, "", {"type": "object"})
    return ToolSpec(name, "d" * (size - len(bare.to_json())), {"type": "object"})


def loaded(number: int, size: int = 100, *tools: ToolSpec) -> LoadedSkill:
    """A skill that takes so many characters to tell."""
    bare = LoadedSkill(UUID(int=number), f"skill-{number}", "i")
    return LoadedSkill(bare.id, bare.name, "i" * (size - len(bare.text) + 1), tools)


def section(
    skills: Sequence[LoadedSkill], room: int, *, requires: dict[int, tuple[int, ...]] | None = None, whole: int = 0
) -> SkillSection:
    known = {
        skill.id: KnownSkill(
            skill.id,
            skill.name,
            f"About {skill.name}.",
            requires=tuple(UUID(int=each) for each in (requires or {}).get(skill.id.int, ())),
        )
        for skill in skills
    }
    catalog = Catalog("support", 1, tuple(known), known)
    return skill_section(AgentSkills(catalog, skills, whole), listing=10_000, loading=room, counter=Characters(1))


def test_instructions_come_first_and_then_as_many_tools_as_fit() -> None:
    skills = [loaded(1, 100, spec("a", 150), spec("b", 80), spec("c", 60))]

    found = section(skills, 250)

    assert skills[0].text in found.section.text
    assert [tool.name for tool in found.tools] == ["a"]
    assert "no room for the tools b, c" in found.section.part.reason


def test_what_is_required_is_shown_with_what_requires_it_or_not_at_all() -> None:
    skills = [loaded(1, 200, spec("base", 90)), loaded(2, 200, spec("own", 90))]

    both = section(skills, 500, requires={2: (1,)})
    without = section(skills, 390, requires={2: (1,)})

    assert both.section.part.refs["loaded"] == ["skill-1", "skill-2"]
    assert [tool.name for tool in both.tools] == ["own"]
    assert without.section.part.refs["loaded"] == ["skill-1"]


def test_the_newest_have_room_before_others_and_who_has_none_is_named() -> None:
    found = section([loaded(1, 300), loaded(2, 300), loaded(3, 300)], 650)

    assert found.section.part.refs["loaded"] == ["skill-2", "skill-3"]
    assert "(There was no room any more for the skill skill-1. " in found.section.text
    assert "no room for the loaded skill-1" in found.section.part.reason
    assert found.section.part.left_out == 1


def test_what_is_loaded_is_not_listed_any_more() -> None:
    found = section([loaded(1, 300), loaded(2, 300)], 350)
    all_of_them = section([loaded(1, 300)], 350)

    assert found.section.part.refs["listed"] == ["skill-1"]
    assert "- skill-2" not in found.section.text
    assert "## Skills" not in all_of_them.section.text


@pytest.mark.req("SKILL-02")
def test_the_reason_says_what_is_saved_and_what_has_no_room_is_not() -> None:
    nothing = section([], 1000, whole=5000)
    kept = section([loaded(1, 300)], 1000, whole=5000)
    gone = section([loaded(1, 300, spec("a", 200))], 250, whole=5000)

    assert nothing.section.part.reason == "the agent has none"
    saved = kept.section.part.refs["saved"]
    assert kept.section.part.reason.endswith(f"; saves {saved['saved']:,} of 5,000 tokens, counted by characters")
    assert gone.section.part.refs["saved"]["whole"] == 4500


def test_skills_whose_instructions_do_not_fit_together_do_not_fit() -> None:
    assert fit([loaded(1, 200), loaded(2, 200)], 399, Characters(1)) is None
    assert fit([loaded(1, 200), loaded(2, 200)], 400, Characters(1)) is not None


def test_the_skill_is_known_that_would_bring_a_tool() -> None:
    grant = SkillGrant(UUID(int=7), "track", "", "read", "read", {}, {})
    forbidden = SkillGrant(UUID(int=8), "wipe", "", "write", "read", {}, {})
    skill = KnownSkill(UUID(int=1), "parcels", "", tools=(grant, forbidden))

    skilled = AgentSkills(Catalog("support", 1, (skill.id,), {skill.id: skill}))

    assert (skilled.skill_with("track"), skilled.skill_with("wipe"), skilled.skill_with("x")) == ("parcels", None, None)
