"""The memory of agents.

A memory is one short text in one of four scopes: session, user, agent, organization. `Memories` stores, finds and edits
memories, `Recall` ranks them, and `retention` computes how they fade. In the background, the `Indexer` adds missing
vectors and terms, and the `Sweeper` deletes expired and faded memories.
"""

from holdfast.memory.drafts import Draft
from holdfast.memory.memories import Memories, MemoryRevision
from holdfast.memory.memory import Memory, Trust
from holdfast.memory.owner_counts import OwnerMemories
from holdfast.memory.owners import Owner, Scope, agent, organization, session, user
from holdfast.memory.recall import Hit, Hits, ScoreParts
from holdfast.memory.why_not import WhyNot

__all__ = [
    "Draft",
    "Hit",
    "Hits",
    "Memories",
    "Memory",
    "MemoryRevision",
    "Owner",
    "OwnerMemories",
    "Scope",
    "ScoreParts",
    "Trust",
    "WhyNot",
    "agent",
    "organization",
    "session",
    "user",
]
