"""The tools with which an agent loads a skill, or searches for skills that its prompt does not list."""

from collections.abc import Collection, Sequence
from typing import Annotated

from msgspec import Meta

from holdfast.agents.prompt_sections import LoadedSkill, fit, instruction_tokens
from holdfast.core.errors import TooLarge
from holdfast.llm.model import ToolSpec
from holdfast.llm.tokens import TokenCounter
from holdfast.skills.catalog import Catalogs, OpenedSkills
from holdfast.skills.disclosure import line_of
from holdfast.skills.function_tools import tool_of
from holdfast.skills.rules.access_rules import AccessRules
from holdfast.skills.rules.rule_set import RuleCaller
from holdfast.skills.run import Run
from holdfast.skills.search import RegistrySearch
from holdfast.skills.tool import Tool

USE_SKILL = "use_skill"
MOST_FOUND = 20


def skill_tools(
    catalogs: Catalogs, finding: RegistrySearch, rules: AccessRules, *, room: int, counter: TokenCounter
) -> list[Tool]:
    """Return the tools that every agent with skills has. Its loaded skills have `room` tokens in a prompt."""

    async def use_skill(run: Run, name: Annotated[str, Meta(min_length=1)]) -> str:
        """Load a skill: from then on you have its instructions and its tools.

        Args:
            name: as it is listed, or as search_skills finds it.
        """
        assert run.agent is not None  # only agents have these tools
        assert run.conversation_id is not None
        caller = RuleCaller(run.user, run.agent)
        opened = await rules.visible(caller, await catalogs.open(run.agent, [name]))
        skills = loaded_skills(opened)
        found = fit(skills, room, counter)
        if found is None:
            raise _too_large(skills, room, counter)
        await catalogs.load(run.conversation_id, run.agent, [opened.skills[-1].id])
        return _describe_loaded(opened, found.left_out)

    async def search_skills(
        run: Run, query: Annotated[str, Meta(min_length=1)], limit: Annotated[int, Meta(ge=1, le=MOST_FOUND)] = 5
    ) -> str:
        """Look for skills that you can load, by what they or their tools are for.

        Args:
            query: what you want to do, in a few words.
            limit: how many, at most.
        """
        found = await finding.search(query, agent=run.agent, limit=limit)
        tools = [each.name for each in found if each.kind == "tool"]
        hidden = await rules.hidden_names(RuleCaller(run.user, run.agent), tools)
        lines = [
            line_of(each.name, each.description)
            if each.kind == "skill"
            else f"{line_of(each.name, each.description)} (a tool of the skill {each.skill})"
            for each in found
            if each.kind == "skill" or each.name not in hidden
        ]
        return "\n".join(lines) or "Nothing was found that you can load."

    return [
        tool_of(use_skill, name=USE_SKILL, idempotent=True, access="read"),
        tool_of(search_skills, idempotent=True, access="read"),
    ]


def loaded_skills(opened: OpenedSkills, without: Collection[str] = ()) -> list[LoadedSkill]:
    """Convert opened skills for a prompt. `without`: tools that the agent has anyway."""
    return [
        LoadedSkill(
            skill.id,
            skill.name,
            skill.instructions,
            [offer.spec for name, offer in opened.disclosed.items() if offer.skill == skill.id and name not in without],
        )
        for skill in opened.skills
    ]


def _too_large(skills: Sequence[LoadedSkill], room: int, counter: TokenCounter) -> TooLarge:
    *needed, requested = skills
    with_it = f" with those of {', '.join(skill.name for skill in needed)}, which it needs," if needed else ""
    return TooLarge(
        f"the skill {requested.name} was not loaded",
        why=f"its instructions{with_it} take {instruction_tokens(skills, counter):,} tokens, and skills have {room:,}",
        next="Continue without it, or shorten its instructions.",
        limit=room,
    )


def _describe_loaded(opened: OpenedSkills, left_out: Sequence[ToolSpec]) -> str:
    """Return the result of `use_skill`: what was loaded. The instructions themselves are part of the prompt."""
    names = [skill.name for skill in opened.skills]
    *needed, requested = names
    with_it = f", and {', '.join(needed)}, which it needs" if needed else ""
    lines = [
        f'{requested} is loaded{with_it}. Its instructions stand under "Skill: {requested}" now: follow them.',
        f"Its tools: {', '.join(opened.disclosed) or 'none'}.",
        *([f"No room is left for: {', '.join(tool.name for tool in left_out)}."] if left_out else []),
        *(f"Not for you: {name}, for {why}" for name, why in opened.refused.items()),
        *(["It leads to these, which you can load:"] if opened.skills[-1].leads_to else []),
        *(line_of(each.name, each.description) for each in opened.skills[-1].leads_to),
    ]
    return "\n".join(lines)
