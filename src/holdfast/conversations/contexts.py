"""Contexts: what a node is and who it is from, as `type:name:value`."""

import re
from typing import NamedTuple

from holdfast.core.errors import InvalidInput

TOOL = "tool"  # the agent that tool results are from
SOMEBODY = "user"  # a user whose name is unknown
ASSISTANT = "assistant"  # an agent whose name is unknown: every agent takes such nodes for its own
UNANSWERED = "unanswered"  # the type of a node that records a run without an answer; it is not a message
MAX_VALUE = 2000

FORM = rf"([a-z][a-z0-9_-]{{0,62}}):([a-z][a-z0-9_-]{{0,62}}):([\s\S]{{1,{MAX_VALUE}}})"
_FORM = re.compile(FORM)


class Context(NamedTuple):
    """The three parts of a context; all are empty for a root."""

    type: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}:{self.value}" if self.type else ""


def parse_context(context: str | Context) -> Context:
    """Return the parts of `type:name:value`. The value can contain colons."""
    text = str(context)
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"the context {text[:100]!r} is invalid",
            why=f"it must be `type:name:value`: type and name in lower case, value of 1 to {MAX_VALUE} characters",
            next="Write it like `text:user:ann` or `text:agent:support`.",
        )
    return Context(*found.groups())


def by_user(name: str | None) -> Context:
    """Return the context of a user's message."""
    return Context("text", "user", name or SOMEBODY)


def by_agent(name: str | None) -> Context:
    """Return the context of an agent's message."""
    return Context("text", "agent", name or ASSISTANT)


BY_TOOL = Context("text", "agent", TOOL)
BY_SYSTEM = Context("text", "system", "system")
