"""Views: which tools a caller sees. This depends only on who the caller is. Pure.

    caller                       tools
    an agent's key or token      those that the agent's skills grant, those of its definition, and those whose
                                 permissions admit this agent or all agents
    an admin of the tenant       all active tools
    any other user               those whose permissions admit users

An agent never sees a tool whose permissions deny it, even if a skill or its definition grants the tool. A caller with
only the scope `read` sees only the tools whose access is `read`. Access rules hide further tools (see inventory.py).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from holdfast.access.principals import Principal
from holdfast.skills.offers import Offer
from holdfast.skills.permissions import allows_users, cap_of, refusal_reason
from holdfast.skills.tool import Tool, ToolEntry, dotted_name

Kind = TypeVar("Kind")


class ObjectCache:
    """Makes each object once. Classes distinguish them, so that each module has its own, with its own type."""

    def __init__(self) -> None:
        self._found: dict[type, object] = {}

    def get(self, kind: type[Kind], make: Callable[[], Kind]) -> Kind:
        """Return the object of a class. `make` makes it at the first call."""
        found = self._found.get(kind)
        if not isinstance(found, kind):
            found = self._found[kind] = make()
        return found


ADMIN = "admin"
USER = "user"
CALL_TOOL = "call_tool"
OF_SKILLS = frozenset({"use_skill", "search_skills"})

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # of a tool in MCP


@dataclass(frozen=True, slots=True)
class ViewKey:
    """The properties of a caller that determine the view. `rules` are the access rules that name the caller."""

    kind: str  # admin, user or agent
    agent: str | None = None
    scopes: frozenset[str] = frozenset()
    rules: tuple[int, ...] = ()

    @classmethod
    def of(cls, caller: Principal, rules: tuple[int, ...] = ()) -> "ViewKey":
        """Return these properties of a caller."""
        scopes = caller.scopes & {"read", "write"}
        if caller.agent is not None:
            return cls("agent", caller.agent, scopes, rules)
        return cls(ADMIN if "admin" in caller.scopes else USER, None, scopes, rules)


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as a caller sees it, listed as `name`; `offer` is what is called; `own`: it belongs to the engine."""

    name: str
    title: str
    offer: Offer
    own: bool = False

    @property
    def tool(self) -> Tool:
        """The tool that is called."""
        return self.offer.tool


@dataclass(frozen=True)
class CallerView:
    """The tools that a caller sees: the engine's own, then the others by name.

    `absent`: the caller acts for an agent that does not exist or is disabled, and reaches nothing. `hides`: access
    rules hide tools from the caller.
    """

    who: ViewKey
    tools: tuple[Listed, ...]
    absent: bool = False
    hides: bool = False
    cache: ObjectCache = field(default_factory=ObjectCache, compare=False, repr=False)

    @cached_property
    def by_name(self) -> Mapping[str, Listed]:
        """The tools by each name that calls them: as listed, as registered, and for a service its method."""
        others = {each.tool.name: each for each in self.tools}
        services = {each.tool.service: each for each in self.tools if each.tool.service is not None}
        return {**others, **services, **{each.name: each for each in self.tools}}

    @cached_property
    def services(self) -> tuple[Listed, ...]:
        """The tools that are services, sorted by method."""
        found = [each for each in self.tools if each.tool.service is not None]
        return tuple(sorted(found, key=lambda each: each.tool.service or ""))

    @cached_property
    def ids(self) -> Sequence[UUID]:
        """The ids of the tools that are registered."""
        return [each.tool.id for each in self.tools if each.tool.id is not None]

    def listed_tools(self, most: int) -> tuple[Listed, ...]:
        """Return the tools to list: all of them, or only the engine's own if there are more than `most` others."""
        own = tuple(each for each in self.tools if each.own)
        return self.tools if len(self.tools) - len(own) <= most else own


def shown_name(tool: Tool) -> str:
    """Return the name of a tool in MCP. For a service, it is the method, with dots."""
    dotted = dotted_name(tool.service or "")
    return dotted if _NAME.fullmatch(dotted) else tool.name


def sees(entry: ToolEntry, who: ViewKey, granted: Collection[str]) -> bool:
    """Whether a caller sees an active registered tool; `granted` are the tools that the caller's agent has."""
    return reaches(entry.tool, who) and permits(entry, who, granted)


def permits(entry: ToolEntry, who: ViewKey, granted: Collection[str]) -> bool:
    """Whether a caller may call a tool by its permissions, or because its agent has it."""
    tool, permissions = entry.tool, entry.permissions
    if who.agent is None:
        return who.kind == ADMIN or allows_users(tool.access, permissions)
    if refusal_reason(tool.access, "execute", permissions, who.agent):
        return False
    return tool.name in granted or cap_of(permissions, who.agent) is not None


def sees_own(tool: Tool, who: ViewKey) -> bool:
    """Whether a caller sees one of the engine's own tools.

    Only agents and admins read skills. Everybody sees `call_tool`, because it calls only what the caller sees anyway.
    """
    if tool.name == CALL_TOOL:
        return bool(who.scopes)
    return reaches(tool, who) and (tool.name not in OF_SKILLS or who.kind != USER)


def reaches(tool: Tool, who: ViewKey) -> bool:
    """Whether a caller has the scope that a tool needs: `read` for a tool that only reads, otherwise `write`."""
    return ("read" if tool.access == "read" else "write") in who.scopes
