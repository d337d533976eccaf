"""Memory and notes as tools.

They do the same as the tools of agents (see agents/memory_tools.py), but return JSON: their caller is a program, which
may also name the agent whose notes it means.
"""

from typing import Any

from holdfast.agents.memory_tools import IMPORTANCE, Importance, RecallLimit, Text, day_of, recall_memories, store_fact
from holdfast.conversations.notes import Change, Note
from holdfast.engine import Engine
from holdfast.gateway.runs import authorization_of, caller_of
from holdfast.gateway.tool_search import note_of
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool


def memory_tools(engine: Engine) -> list[Tool]:
    """Return the tools that store and recall memories, and those that read and edit notes."""

    async def remember(run: Run, content: Text, importance: Importance = IMPORTANCE) -> dict[str, Any]:
        """Remember a fact about the user, for later conversations with any agent.

        Args:
            content: one statement that can be understood alone, such as "Ann is allergic to peanuts".
            importance: from 0 to 1.
        """
        stored = await store_fact(engine.memory, run, content, importance)
        return {"id": str(stored.id), "content": stored.content}

    async def recall(run: Run, query: Text, limit: RecallLimit = 5) -> dict[str, Any]:
        """Search what is remembered about the user, and what the organization knows.

        Args:
            query: a question or a few words.
            limit: how many memories, at most.
        """
        collections = (await authorization_of(engine, run).reader()).collections
        hits, reduced = await recall_memories(engine.memory, run, query, limit, collections)
        memories = [
            {
                "content": hit.memory.content,
                "scope": hit.memory.owner.scope,
                "date": day_of(hit.memory),
                **({"author": hit.memory.author} if hit.memory.author else {}),
                **({"citation": hit.citation} if hit.citation else {}),
            }
            for hit in hits
        ]
        return {"memories": memories, **note_of(reduced)}

    async def read_notes(run: Run, agent: Text) -> dict[str, Any]:
        """Read what an agent has noted about the user: a Markdown text that it sees at every turn.

        Args:
            agent: its name, as list_agents tells it.
        """
        return _note_fields(
            await engine.notes.read(user=caller_of(run).user, agent=authorization_of(engine, run).agent(agent))
        )

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
        return _note_fields(note)

    return [
        tool_of(remember, access="write"),
        tool_of(recall, idempotent=True, access="read"),
        tool_of(read_notes, idempotent=True, access="read"),
        tool_of(edit_notes, access="write"),
    ]


def _note_fields(note: Note) -> dict[str, Any]:
    return {"notes": note.notes, "version": note.version}
