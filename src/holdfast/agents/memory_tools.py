"""Built-in tools of agents with memory: an agent's notes about its user, and the memories that it may read and write.

The run determines the user and the agent. A model cannot name others.

The gateway has tools of the same names (see gateway/builtin/memory.py). `store_fact` and `recall_memories` are what
both do; the tools differ in what they take and return: a model that has this turn's context reads text, a program reads
JSON.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from holdfast.agents.quotation import excerpt, short_citation
from holdfast.conversations.notes import Notes, Operation
from holdfast.core.errors import InvalidInput
from holdfast.memory import Hit, Memories, Memory, Scope, user
from holdfast.memory.drafts import Draft
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

IMPORTANCE = 0.8  # of a memory that a model stores, unless it says otherwise
MOST_RECALLED = 50

Text = Annotated[str, Meta(min_length=1)]
Importance = Annotated[float, Meta(ge=0, le=1)]
RecallLimit = Annotated[int, Meta(ge=1, le=MOST_RECALLED)]


def memory_tools(notes: Notes, memory: Memories, collections: Sequence[str] | None = ()) -> list[Tool]:
    """Return the tools of an agent with memory that also reads the documents of these collections; None means all."""

    async def manage_long_term_memory(
        run: Run, operation: Operation = "read", content: str | None = None, section_header: str | None = None
    ) -> str:
        """Read or change your notes about the user: a Markdown text that you see at every turn.

        Args:
            operation: append, prepend and overwrite need `content`; delete_section_by_header needs `section_header`;
                replace_section_by_header needs both.
            content: the Markdown to write.
            section_header: the header of a section, as it stands in the notes.
        """
        note = await notes.edit(
            user=_user(run),
            agent=_agent(run),
            operation=operation,
            content=content,
            section_header=section_header,
            key=run.key,
        )
        if operation == "read":
            return note.notes or "(nothing has been noted yet)"
        return f"Done. The notes are at version {note.version} and have {len(note.notes)} characters."

    async def remember(run: Run, content: Text, importance: Importance = IMPORTANCE) -> str:
        """Remember a fact about the user for later conversations.

        Args:
            content: one statement that can be understood alone, such as "Ann is allergic to peanuts".
            importance: from 0 to 1.
        """
        # A model repeats itself in the turns of a conversation, so the same sentence is stored once.
        stored = await store_fact(memory, run, content, importance, once=True)
        return f"Remembered: {stored.content}"

    async def recall(run: Run, query: Text, limit: RecallLimit = 5) -> str:
        """Search what is remembered about the user, and what you and the organization know.

        Args:
            query: a question or a few words.
            limit: how many memories, at most.
        """
        hits, _ = await recall_memories(memory, run, query, limit, collections)
        return "\n".join(map(_line, hits)) or "Nothing is remembered yet."

    return [
        tool_of(manage_long_term_memory, idempotent=True),
        tool_of(remember, idempotent=True),
        tool_of(recall, idempotent=True, access="read"),
    ]


async def store_fact(memory: Memories, run: Run, content: str, importance: float, *, once: bool = False) -> Memory:
    """Store a fact about the user of a run. `once`: a repetition of the sentence is the same memory."""
    draft = Draft(content, importance=importance, trust="agent", source=run.conversation_id, key=run.key, once=once)
    [stored] = await memory.remember_many(user(_user(run), agent=run.agent), [draft])
    return stored


async def recall_memories(
    memory: Memories, run: Run, query: str, limit: int, collections: Sequence[str] | None
) -> tuple[list[Hit], str]:
    """Search the memories of the user, the agent and the organization; also say why a search was degraded.

    Documents of these collections count as memories, too; None means all collections.
    """
    limits: dict[Scope, int] = {"session": 0, "user": limit, "agent": limit, "organization": limit}
    hits = await memory.context(query, user=run.user, agent=run.agent, limits=limits, collections=collections)
    return hits[:limit], hits.reduced


def day_of(memory: Memory) -> str:
    """Return the day of a memory: when it was said or, if that is unknown, when it was stored."""
    return f"{memory.at or memory.created_at:%Y-%m-%d}"


def _user(run: Run) -> str:
    if run.user is None:
        raise InvalidInput("the conversation has no user", next="Answer without this tool.")
    return run.user


def _agent(run: Run) -> str:
    assert run.agent is not None  # only agents have these tools
    return run.agent


def _line(hit: Hit) -> str:
    """Return a memory as a line, with its date and author, or an excerpt of a document with its source."""
    memory = hit.memory
    if hit.citation is not None:
        return excerpt(short_citation(hit.citation), memory.content)
    by = f", {memory.author}" if memory.author else ""
    return f"- [{day_of(memory)}{by}] {' '.join(memory.content.split())}"
