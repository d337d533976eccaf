"""What agents remember.

A memory is one short text in one of four scopes: session, user, agent, organization. `Memories` writes, finds and
corrects them; `Recall` ranks them; `retention` says how they fade; what was missed or has to be made anew is made by
the `Indexer`, and the `Sweeper` deletes what is over.
"""

from holdfast.memory.absence import WhyNot
from holdfast.memory.drafts import Draft
from holdfast.memory.holdings import Holding
from holdfast.memory.memories import Memories, MemoryRevision
from holdfast.memory.memory import Memory, Trust
from holdfast.memory.owners import Owner, Scope, agent, organization, session, user
from holdfast.memory.recall import Hit, Hits, Parts

__all__ = [
    "Draft",
    "Hit",
    "Hits",
    "Holding",
    "Memories",
    "Memory",
    "MemoryRevision",
    "Owner",
    "Parts",
    "Scope",
    "Trust",
    "WhyNot",
    "agent",
    "organization",
    "session",
    "user",
]
