"""The tools by which an agent comes to its skills: it loads one, or looks for one that it was not told of."""

from typing import Annotated

from msgspec import Meta

from holdfast.skills.catalog import Catalogs, Opened
from holdfast.skills.disclosure import line_of
from holdfast.skills.finding import Finding
from holdfast.skills.function import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

USE_SKILL = "use_skill"
MOST_FOUND = 20


def skill_tools(catalogs: Catalogs, finding: Finding) -> list[Tool]:
    """The tools that every agent with skills has."""

    async def use_skill(run: Run, name: Annotated[str, Meta(min_length=1)]) -> str:
        """Load a skill: from then on you have its instructions and its tools.

        Args:
            name: as it is listed, or as search_skills finds it.
        """
        assert run.agent is not None  # nobody else has these tools
        opened = await catalogs.open(run.agent, [name], conversation=run.conversation_id)
        return _told(opened)

    async def search_skills(
        run: Run, query: Annotated[str, Meta(min_length=1)], limit: Annotated[int, Meta(ge=1, le=MOST_FOUND)] = 5
    ) -> str:
        """Look for skills that you can load, by what they or their tools are for.

        Args:
            query: what you want to do, in a few words.
            limit: how many, at most.
        """
        found = await finding.search(query, agent=run.agent, limit=limit)
        lines = [
            line_of(each.name, each.description)
            if each.kind == "skill"
            else f"{line_of(each.name, each.description)} (a tool of the skill {each.skill})"
            for each in found
        ]
        return "\n".join(lines) or "Nothing was found that you can load."

    return [
        tool_of(use_skill, name=USE_SKILL, idempotent=True, access="read"),
        tool_of(search_skills, idempotent=True, access="read"),
    ]


def _told(opened: Opened) -> str:
    """What was loaded; the instructions themselves stand among the agent's own."""
    names = [skill.name for skill in opened.skills]
    *needed, asked = names
    with_it = f", and {', '.join(needed)}, which it needs" if needed else ""
    lines = [
        f'{asked} is loaded{with_it}. Its instructions stand under "Skill: {asked}" now: follow them.',
        f"Its tools: {', '.join(opened.disclosed) or 'none'}.",
        *(f"Not for you: {name}, for {why}" for name, why in opened.refused.items()),
        *(["It leads to these, which you can load:"] if opened.skills[-1].leads_to else []),
        *(line_of(each.name, each.description) for each in opened.skills[-1].leads_to),
    ]
    return "\n".join(lines)
