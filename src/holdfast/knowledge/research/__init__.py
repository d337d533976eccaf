"""Research: answers questions that need many documents, or a document too long to be read at once.

It searches, selects, reads, combines and reports under a budget of model calls and tokens. Every statement of a report
cites the passages that it comes from. It is never used to recall memories in a conversation.
"""

from holdfast.knowledge.research.budget import Budget
from holdfast.knowledge.research.citations import Citation, CitedStatement
from holdfast.knowledge.research.report import ResearchReport
from holdfast.knowledge.research.research import Research
from holdfast.knowledge.research.run import ResearchEvent, ResearchRun, ResearchState

__all__ = [
    "Budget",
    "Citation",
    "CitedStatement",
    "Research",
    "ResearchEvent",
    "ResearchReport",
    "ResearchRun",
    "ResearchState",
]
