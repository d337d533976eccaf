"""The memory of agents.

A memory is one short text in one of four scopes: session, user, agent, organization. `Memories` stores, finds and edits
memories, `Recall` ranks them, and `retention` computes how they fade. In the background, the `Indexer` adds missing
vectors and terms, and the `Sweeper` deletes expired and faded memories.
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
