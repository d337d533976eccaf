"""The memory of agents.

A memory is one short text in one of four scopes: session, user, agent, organization. `Memories` stores, finds and edits
memories, `Recall` ranks them, and `retention` computes how they fade. In the background, the `Indexer` adds missing
vectors and terms, and the `Sweeper` deletes expired and faded memories. `graph` is what they mention.

Each name is imported at its first use: the process that reads documents needs only `memory.graph.extraction`.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from holdfast.memory.drafts import Draft as Draft
    from holdfast.memory.memories import Memories as Memories
    from holdfast.memory.memories import MemoryRevision as MemoryRevision
    from holdfast.memory.memory import Memory as Memory
    from holdfast.memory.memory import Trust as Trust
    from holdfast.memory.owner_counts import OwnerMemories as OwnerMemories
    from holdfast.memory.owners import Owner as Owner
    from holdfast.memory.owners import Scope as Scope
    from holdfast.memory.owners import agent as agent
    from holdfast.memory.owners import organization as organization
    from holdfast.memory.owners import session as session
    from holdfast.memory.owners import user as user
    from holdfast.memory.recall import Hit as Hit
    from holdfast.memory.recall import Hits as Hits
    from holdfast.memory.recall import ScoreParts as ScoreParts
    from holdfast.memory.why_not import WhyNot as WhyNot

__getattr__ = lazy_exports(
    __name__,
    {
        "Draft": "holdfast.memory.drafts",
        "Hit": "holdfast.memory.recall",
        "Hits": "holdfast.memory.recall",
        "Memories": "holdfast.memory.memories",
        "Memory": "holdfast.memory.memory",
        "MemoryRevision": "holdfast.memory.memories",
        "Owner": "holdfast.memory.owners",
        "OwnerMemories": "holdfast.memory.owner_counts",
        "Scope": "holdfast.memory.owners",
        "ScoreParts": "holdfast.memory.recall",
        "Trust": "holdfast.memory.memory",
        "WhyNot": "holdfast.memory.why_not",
        "agent": "holdfast.memory.owners",
        "organization": "holdfast.memory.owners",
        "session": "holdfast.memory.owners",
        "user": "holdfast.memory.owners",
    },
)
