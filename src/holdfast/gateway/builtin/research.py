"""Research as a tool. It does the same as that of agents (agents/research_tools.py), but returns JSON."""

from typing import Any

import msgspec

from holdfast.agents.memory_tools import Text
from holdfast.agents.research_tools import Question, begin_analysis
from holdfast.engine import Engine
from holdfast.gateway.runs import authorization_of
from holdfast.knowledge.research import ResearchRun
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

WAIT = 0.8  # of the longest time that a call through the gateway may take


def research_tools(engine: Engine) -> list[Tool]:
    """Return the tool that answers a question from a long document or a collection."""

    async def analyze_large_document(
        run: Run,
        question: Question,
        document: Text | None = None,
        collection: Text | None = None,
        research_id: Text | None = None,
    ) -> dict[str, Any]:
        """Answer a question from a long document or a whole collection, with citations. Takes minutes.

        Use it only if search_knowledge and read_document do not suffice: it reads many passages with many model calls.

        Args:
            question: what to find out.
            document: only this document, by its name or id.
            collection: only documents of this collection.
            research_id: of an earlier call that was not done: returns to that research.
        """
        reader = await authorization_of(engine, run).reader()
        research = engine.research
        found = await begin_analysis(research, run, reader, question, document, collection, research_id)
        return _fields(await research.wait(found.id, timeout=WAIT * engine.config.gateway.timeout))

    return [tool_of(analyze_large_document, access="write")]


def _fields(run: ResearchRun) -> dict[str, Any]:
    fields: dict[str, Any] = {"research_id": str(run.id), "state": run.state, "calls": run.calls, "tokens": run.tokens}
    if run.report is not None:
        report = run.report
        fields |= {"report": report.text, "statements": msgspec.to_builtins(report.statements)}
        fields |= {"missing": list(report.missing), "complete": report.complete}
    elif run.error is not None:
        fields["error"] = run.error["message"]
    return fields
