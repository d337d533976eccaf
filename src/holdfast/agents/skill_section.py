"""The skills section of a prompt: names of skills that an agent can load, and instructions of those it has loaded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from holdfast.agents.prompt_sections import PromptPart, PromptSection
from holdfast.llm.model import ToolSpec
from holdfast.llm.tokens import TokenCounter
from holdfast.skills.disclosure import Catalog, Listing, in_load_order, list_skills, refusal

SKILLS = (
    "\n\n## Skills\nEach is a set of instructions, mostly with tools of its own, that you do not have yet. "
    "Before you do what one is about, load it with use_skill.\n"
)
MORE = "\n(And {} more: search_skills finds them.)"
LOADED = "\n\n## Skill: {}\n{}"
GONE = "\n\n(There was no room any more for the skill {}. Where you need it, load it again with use_skill.)"


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A loaded skill: its instructions, and the tools that it brings."""

    id: UUID
    name: str
    instructions: str
    tools: Sequence[ToolSpec] = ()

    @property
    def text(self) -> str:
        """The skill as it appears in the prompt."""
        return LOADED.format(self.name, self.instructions.strip())


@dataclass(frozen=True, slots=True)
class AgentSkills:
    """The skills of an agent in a turn. `whole`: the tokens that all skills would take if they were all loaded."""

    catalog: Catalog
    loaded: Sequence[LoadedSkill] = ()
    whole: int = 0

    def skill_with(self, tool: str) -> str | None:
        """Return a skill that would bring a tool, or None."""
        skills = self.catalog.skills.values()
        found = ((skill, grant) for skill in skills for grant in skill.tools if grant.name == tool)
        return next((skill.name for skill, grant in found if not refusal(grant, self.catalog.agent)), None)


@dataclass(frozen=True, slots=True)
class SkillFit:
    """How skills fit into a prompt: the tools that have room, those that do not, and the tokens in use."""

    tools: Sequence[ToolSpec]
    left_out: Sequence[ToolSpec]
    tokens: int


@dataclass(frozen=True, slots=True)
class SkillSection:
    """The section, the tools that come with it, and the loaded skills that it shows."""

    section: PromptSection
    tools: Sequence[ToolSpec] = field(default_factory=tuple[ToolSpec, ...])
    shown: Sequence[LoadedSkill] = field(default_factory=tuple[LoadedSkill, ...])


def fit(skills: Sequence[LoadedSkill], room: int, counter: TokenCounter) -> SkillFit | None:
    """Return how skills that belong together fit into `room` tokens, or None if they do not.

    The instructions of all of them have to fit. Tools are added as long as they fit, those of the last skill first.
    """
    tokens = instruction_tokens(skills, counter)
    if tokens > room:
        return None
    tools: list[ToolSpec] = []
    left_out: list[ToolSpec] = []
    for tool in (tool for skill in reversed(skills) for tool in skill.tools):
        takes = counter.count(tool.told())
        has_room = tokens + takes <= room
        tokens += takes if has_room else 0
        (tools if has_room else left_out).append(tool)
    return SkillFit(tools, left_out, tokens)


def instruction_tokens(skills: Sequence[LoadedSkill], counter: TokenCounter) -> int:
    """Return how many tokens the instructions of skills take."""
    return sum(counter.count(skill.text) for skill in skills)


def skill_section(skilled: AgentSkills | None, *, listing: int, loading: int, counter: TokenCounter) -> SkillSection:
    """Build the section: names in at most `listing` tokens, the newest loaded skills in at most `loading` tokens."""
    if skilled is None or not skilled.catalog.skills:
        return SkillSection(PromptSection("", PromptPart("skills", 0, 0, 0, "the agent has none")))
    loaded = {skill.id: skill for skill in skilled.loaded}
    kept: set[UUID] = set()
    left_out: list[ToolSpec] = []
    left = loading
    for newest in reversed(loaded):
        needed = (skill.id for skill in in_load_order(skilled.catalog, [newest]))
        together = [loaded[id] for id in needed if id in loaded and id not in kept]
        found = fit(together, left, counter)
        if found is not None:
            left -= found.tokens
            left_out += found.left_out
            kept |= {skill.id for skill in together}
    shown = [skill for skill in skilled.loaded if skill.id in kept]
    gone = [skill for skill in skilled.loaded if skill.id not in kept]
    without_room = {tool.name for tool in left_out}
    tools = [tool for skill in shown for tool in skill.tools if tool.name not in without_room]
    names = list_skills(skilled.catalog, listing, counter, without=kept)
    text = _list(names) + "".join(skill.text for skill in shown)
    text += GONE.format(", ".join(skill.name for skill in gone)) if gone else ""
    tokens = counter.count(text)
    # Loaded skills and tools that have no room do not count as saved.
    missed = instruction_tokens(gone, counter) + _tokens([tool for skill in gone for tool in skill.tools], counter)
    whole = max(0, skilled.whole - missed - _tokens(left_out, counter))
    told = tokens + _tokens(tools, counter)
    saved = {"whole": whole, "shown": told, "saved": max(0, whole - told), "counter": counter.name}
    reasons = [
        "names and descriptions" if not names.left_out else f"the first {len(names.shown)} that fit, by name",
        *([f"the instructions of {len(shown)} that are loaded"] if shown else []),
        *([f"no room for the loaded {', '.join(skill.name for skill in gone)}"] if gone else []),
        *([f"no room for the tools {', '.join(sorted(without_room))}"] if without_room else []),
        f"saves {saved['saved']:,} of {whole:,} tokens, counted by {counter.name}",
    ]
    refs: dict[str, Any] = {
        "listed": [skill.name for skill in names.shown],
        "loaded": [skill.name for skill in shown],
        "saved": saved,
    }
    numbers = len(names.shown) + len(shown), len(names.left_out) + len(gone)
    part = PromptPart("skills", tokens, *numbers, "; ".join(reasons), refs)
    return SkillSection(PromptSection(text, part), tools, shown)


def _list(names: Listing) -> str:
    if not names.shown and not names.left_out:
        return ""
    more = MORE.format(len(names.left_out)) if names.left_out else ""
    return SKILLS + names.text + more


def _tokens(tools: Sequence[ToolSpec], counter: TokenCounter) -> int:
    return sum(counter.count(tool.told()) for tool in tools)
