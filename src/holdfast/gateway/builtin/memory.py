"""Memory and notes as tools."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from holdfast.engine import Engine
from holdfast.gateway.runs import authorization_of, caller_of
from holdfast.gateway.tool_search import note_of
from holdfast.memory import Scope, user
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

IMPORTANCE = 0.8  # default importance of a memory that a model stores
MOST_RECALLED = 50

Text = Annotated[str, Meta(min_length=1)]
Change = Literal[
    "overwrite", "append", "prepend", "delete_section_by_header", "replace_section_by_header", "delete_all_notes"
]


def memory_tools(engine: Engine) -> list[Tool]:
    """Return the tools that store and recall memories, and those that read and edit notes."""

    async def remember(
        run: Run, content: Text, importance: Annotated[float, Meta(ge=0, le=1)] = IMPORTANCE
    ) -> dict[str, Any]:
        """Remember a fact about the user, for later conversations with any agent.

        Args:
            content: one statement that can be understood alone, such as "Ann is allergic to peanuts".
            importance: from 0 to 1.
        """
        owner = user(caller_of(run).user, agent=run.agent)
        stored = await engine.memory.remember(owner, content, importance=importance, trust="agent", key=run.key)
        return {"id": str(stored.id), "content": stored.content}

    async def recall(run: Run, query: Text, limit: Annotated[int, Meta(ge=1, le=MOST_RECALLED)] = 5) -> dict[str, Any]:
        """Search what is remembered about the user, and what the organization knows.

        Args:
            query: a question or a few words.
            limit: how many memories, at most.
        """
        agents = 0 if run.agent is None else limit
        limits: dict[Scope, int] = {"session": 0, "user": limit, "agent": agents, "organization": limit}
        hits = await engine.memory.context(query, user=caller_of(run).user, agent=run.agent, limits=limits)
        memories = [
            {
                "content": hit.memory.content,
                "scope": hit.memory.owner.scope,
                "date": f"{hit.memory.at or hit.memory.created_at:%Y-%m-%d}",
                **({"author": hit.memory.author} if hit.memory.author else {}),
            }
            for hit in hits[:limit]
        ]
        return {"memories": memories, **note_of(hits.reduced)}

    async def read_notes(run: Run, agent: Text) -> dict[str, Any]:
        """Read what an agent has noted about the user: a Markdown text that it sees at every turn.

        Args:
            agent: its name, as list_agents tells it.
        """
        note = await engine.notes.read(user=caller_of(run).user, agent=authorization_of(engine, run).agent(agent))
        return {"notes": note.notes, "version": note.version}

    async def edit_notes(
        run: Run, agent: Text, operation: Change, content: str | None = None, section_header: str | None = None
    ) -> dict[str, Any]:
        """Change what an agent has noted about the user.

        Args:
            agent: its name, as list_agents tells it.
            operation: append, prepend and overwrite need `content`; delete_section_by_header needs `section_header`;
                replace_section_by_header needs both.
            content: the Markdown to write.
            section_header: the header of a section, as it stands in the notes.
        """
        note = await engine.notes.edit(
            user=caller_of(run).user,
            agent=authorization_of(engine, run).agent(agent),
            operation=operation,
            content=content,
            section_header=section_header,
            key=run.key,
        )
        return {"notes": note.notes, "version": note.version}

    return [
        tool_of(remember, access="write"),
        tool_of(recall, idempotent=True, access="read"),
        tool_of(read_notes, idempotent=True, access="read"),
        tool_of(edit_notes, access="write"),
    ]
