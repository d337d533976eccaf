"""Views: which tools a caller sees, by who they are alone. Pure.

    who                          what they see
    an agent's key or token      what the agent's skills grant it, what it is declared with, and what the permissions of
                                 a tool give to it by name or to all agents
    who administers the tenant   everything that is active
    any other user               what the permissions of a tool give to users

A tool that its permissions deny to an agent is not seen, whoever granted it. Whoever may only read sees the tools whose
access is `read`.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast.access.principals import Principal
from holdfast.skills.offers import Offer
from holdfast.skills.permits import cap_of, opens, permits
from holdfast.skills.tool import Entry, Tool

ADMIN = "admin"
USER = "user"
CALL_TOOL = "call_tool"
OF_SKILLS = frozenset({"use_skill", "search_skills"})

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # of a tool on MCP


@dataclass(frozen=True, slots=True)
class Who:
    """What a caller's view depends on, and nothing else."""

    kind: str  # admin, user or agent
    agent: str | None = None
    scopes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, caller: Principal) -> "Who":
        """What this caller's view depends on."""
        scopes = caller.scopes & {"read", "write"}
        if caller.agent is not None:
            return cls("agent", caller.agent, scopes)
        return cls(ADMIN if "admin" in caller.scopes else USER, None, scopes)


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as a caller sees it: `name` is what they call it by, `offer` what is called; `own`: it is the engine's."""

    name: str
    title: str
    offer: Offer
    own: bool = False

    @property
    def tool(self) -> Tool:
        """What is called."""
        return self.offer.tool


@dataclass(frozen=True)
class View:
    """The tools that a caller sees, in the order of their names, the engine's own first.

    `absent`: the agent that they speak for is not there, or is switched off, and they reach nothing at all.
    """

    who: Who
    tools: tuple[Listed, ...]
    absent: bool = False
    kept: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)  # what was made of it

    @cached_property
    def by_name(self) -> Mapping[str, Listed]:
        """The tools by what they are called by; a service goes by its method, and by its name in the registry, too."""
        others = {each.tool.name: each for each in self.tools}
        services = {each.tool.service: each for each in self.tools if each.tool.service is not None}
        return {**others, **services, **{each.name: each for each in self.tools}}

    @cached_property
    def services(self) -> tuple[Listed, ...]:
        """The tools that are services, in the order of their methods."""
        found = [each for each in self.tools if each.tool.service is not None]
        return tuple(sorted(found, key=lambda each: each.tool.service or ""))

    def told(self, most: int) -> tuple[Listed, ...]:
        """The tools that a client is told of at once: all of them, or, where they are many, the engine's own."""
        own = tuple(each for each in self.tools if each.own)
        return self.tools if len(self.tools) - len(own) <= most else own


def shown_name(tool: Tool) -> str:
    """What a tool is called by over MCP: a service by its method, with dots where MCP takes no slashes."""
    dotted = (tool.service or "").replace("/", ".")
    return dotted if _NAME.fullmatch(dotted) else tool.name


def sees(entry: Entry, who: Who, granted: Collection[str]) -> bool:
    """Whether somebody sees a registered tool that is active; `granted` are the tools that their agent has anyway."""
    tool, permissions = entry.tool, entry.permissions
    if not _reaches(tool, who):
        return False
    if who.agent is None:
        return who.kind == ADMIN or opens(tool.access, permissions)
    if permits(tool.access, "execute", permissions, who.agent):
        return False
    return tool.name in granted or cap_of(permissions, who.agent) is not None


def sees_own(tool: Tool, who: Who) -> bool:
    """Whether somebody sees one of the engine's own tools.

    Skills are read by agents and by who administers them. `call_tool` is everybody's, for it reaches nothing else.
    """
    if tool.name == CALL_TOOL:
        return bool(who.scopes)
    return _reaches(tool, who) and (tool.name not in OF_SKILLS or who.kind != USER)


def _reaches(tool: Tool, who: Who) -> bool:
    """Whether somebody's scopes reach what calling a tool takes: whoever only reads calls what only reads."""
    return ("read" if tool.access == "read" else "write") in who.scopes
