"""The built-in tool for research: a question that a search does not answer, from a long document or many of them.

A call starts a research that survives the end of its process, and waits for the report. If that takes longer than a
tool may, the model calls again with the id. The gateway has a tool of the same name that returns JSON
(gateway/builtin/research.py). It is never used to recall memories.
"""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID, uuid5

from msgspec import Meta

from holdfast.agents.memory_tools import Text
from holdfast.agents.quotation import neutral
from holdfast.core.errors import InvalidInput
from holdfast.knowledge import Knowledge
from holdfast.knowledge.knowledge_reader import KnowledgeReader, readable_owners
from holdfast.knowledge.research import Research, ResearchRun
from holdfast.knowledge.research.run import unknown_research
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

WAIT = 100.0  # seconds for a report; a call may take `agents.tool_timeout`
CALLS = UUID("5f0f3c1e-2f9a-5d0e-9c41-1d2a7a5a3c52")  # the namespace of the ids of research that calls start

Question = Annotated[str, Meta(min_length=1, max_length=4000)]


def research_tools(research: Research, knowledge: Knowledge, collections: Sequence[str] | None) -> list[Tool]:
    """Return the tool of an agent that reads the documents of these collections; None means all."""
    limited = None if collections is None else tuple(collections)

    async def analyze_large_document(
        run: Run,
        question: Question,
        document: Text | None = None,
        collection: Text | None = None,
        research_id: Text | None = None,
    ) -> str:
        """Answer a question from a long document or a whole collection, with citations. Takes minutes.

        Use it only if search_knowledge and read_document do not suffice: it reads many passages with many model calls.

        Args:
            question: what to find out.
            document: only this document, by its name or id.
            collection: only documents of this collection.
            research_id: of an earlier call that was not done: returns to that research.
        """
        reader = KnowledgeReader(knowledge, readable_owners(user_name=run.user, agent_name=run.agent), limited)
        found = await begin_analysis(research, run, reader, question, document, collection, research_id)
        return describe_research(await research.wait(found.id, timeout=WAIT))

    return [tool_of(analyze_large_document, idempotent=True, access="read")]


async def begin_analysis(
    research: Research,
    run: Run,
    reader: KnowledgeReader,
    question: str,
    document: str | None,
    collection: str | None,
    research_id: str | None,
) -> ResearchRun:
    """Start a research within the documents of a reader, or return to an earlier one of the same user."""
    if research_id is not None:
        return await _earlier(research, run, research_id)
    allowed = reader.collections
    if collection is not None and allowed is not None and collection not in allowed:
        raise InvalidInput(f"there is no collection {collection!r:.200}", next=f"Use one of {', '.join(allowed)}.")
    found = None if document is None else await reader.document(document)
    return await research.start(
        question,
        documents=None if found is None else [found.id],
        collections=allowed if collection is None else [collection],
        owners=reader.owners if found is None else [found.owner],
        user=run.user,
        agent=run.agent,
        budget=research.most,
        whole=document is not None,
        id=uuid5(CALLS, f"{run.run_id}\0{run.key}\0{run.call_id}"),  # a call that is repeated after a crash goes on
    )


def describe_research(run: ResearchRun) -> str:
    """Return a report with its citations as text for a model; or how far the research is."""
    if run.report is not None:
        return neutral(run.report.text)
    if run.state in ("failed", "cancelled"):
        return f"The research {run.state}: {(run.error or {}).get('message', 'somebody cancelled it')}"
    return (
        f"The research is not done yet: {run.calls} calls so far. Call analyze_large_document again with the same "
        f"question and research_id={run.id} to wait for its report."
    )


async def _earlier(research: Research, run: Run, research_id: str) -> ResearchRun:
    try:
        id = UUID(research_id)
    except ValueError:
        raise InvalidInput(f"{research_id[:80]!r} is no id of a research", next="Leave it out.") from None
    found = await research.get(id)
    if found.user != run.user or found.agent != run.agent:
        raise unknown_research(id)
    return found
