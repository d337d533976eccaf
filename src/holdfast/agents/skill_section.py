"""The section of skills: names of those that an agent can load, and the instructions of those that it has loaded."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.agents.parts import Part, Section
from holdfast.llm.model import ToolSpec
from holdfast.llm.tokens import TokenCounter
from holdfast.skills.disclosure import Catalog, Listing, listed

SKILLS = (
    "\n\n## Skills\nEach is a set of instructions, mostly with tools of its own, that you do not have yet. "
    "Before you do what one is about, load it with use_skill.\n"
)
MORE = "\n(And {} more: search_skills finds them.)"
LOADED = "\n\n## Skill: {}\n{}"


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill that is loaded: its instructions, and the tools that it brings."""

    name: str
    instructions: str
    tools: Sequence[ToolSpec] = ()


@dataclass(frozen=True, slots=True)
class Skilled:
    """What an agent knows of skills in a turn; `whole` are the tokens of all that it could load, told at once."""

    catalog: Catalog
    loaded: Sequence[LoadedSkill] = ()
    whole: int = 0


@dataclass(frozen=True, slots=True)
class SkillSection:
    """The section, and the tools that come with it."""

    section: Section
    tools: Sequence[ToolSpec] = field(default_factory=tuple[ToolSpec, ...])


def skill_section(skilled: Skilled | None, *, listing: int, loading: int, counter: TokenCounter) -> SkillSection:
    """Names in at most `listing` tokens; of what is loaded the newest, with its tools in at most `loading`."""
    if skilled is None or not skilled.catalog.skills:
        return SkillSection(Section("", Part("skills", 0, 0, 0, "the agent has none")))
    names = listed(skilled.catalog, listing, counter)
    kept: list[LoadedSkill] = []
    left = loading
    for skill in reversed(skilled.loaded):
        takes = counter.count(LOADED.format(skill.name, skill.instructions.strip())) + _tokens(skill.tools, counter)
        if takes <= left:
            left -= takes
            kept.insert(0, skill)
    tools = [spec for skill in kept for spec in skill.tools]
    text = _list(names) + "".join(LOADED.format(skill.name, skill.instructions.strip()) for skill in kept)
    tokens = counter.count(text)
    left_out = len(names.left_out) + len(skilled.loaded) - len(kept)
    refs: dict[str, Any] = {
        "listed": [skill.name for skill in names.shown],
        "loaded": [skill.name for skill in kept],
        "saved": _saved(skilled.whole, tokens + _tokens(tools, counter), counter),
    }
    part = Part("skills", tokens, len(names.shown) + len(kept), left_out, _reason(skilled, names, kept), refs)
    return SkillSection(Section(text, part), tools)


def _list(names: Listing) -> str:
    more = MORE.format(len(names.left_out)) if names.left_out else ""
    return SKILLS + names.text + more


def _tokens(tools: Sequence[ToolSpec], counter: TokenCounter) -> int:
    return sum(counter.count(tool.told()) for tool in tools)


def _saved(whole: int, shown: int, counter: TokenCounter) -> dict[str, Any]:
    """What it saves that skills are told step by step."""
    return {"whole": whole, "shown": shown, "saved": max(0, whole - shown), "counter": counter.name}


def _reason(skilled: Skilled, names: Listing, kept: Sequence[LoadedSkill]) -> str:
    reasons = [
        "names and descriptions" if not names.left_out else f"the first {len(names.shown)} that fit, by name",
        *([f"the instructions of {len(kept)} that are loaded"] if kept else []),
        *([f"{len(skilled.loaded) - len(kept)} loaded ones have no room"] if len(kept) < len(skilled.loaded) else []),
    ]
    return "; ".join(reasons)
