"""Documents that users bring: parsed, split into chunks, and searched.

A document belongs to the organization, an agent or a user, and to a collection. Its chunks are organizational memories
(or the agent's or the user's): plain SQL sees them in the views of memories. `Knowledge` adds, finds, reads and removes
documents; the `Ingester` parses them in the background, and `Research` answers questions that need many documents.

The names are imported at their first use: the process that parses files imports this package, and must start fast.
"""

from typing import TYPE_CHECKING

from holdfast.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from holdfast.knowledge.document import CollectionCount as CollectionCount
    from holdfast.knowledge.document import Document as Document
    from holdfast.knowledge.document import DocumentStatus as DocumentStatus
    from holdfast.knowledge.document import ErasedKnowledge as ErasedKnowledge
    from holdfast.knowledge.hits import PassageHits as PassageHits
    from holdfast.knowledge.job import IngestJob as IngestJob
    from holdfast.knowledge.job import JobState as JobState
    from holdfast.knowledge.knowledge import Knowledge as Knowledge
    from holdfast.knowledge.readings import DocumentChunk as DocumentChunk
    from holdfast.knowledge.readings import Outline as Outline
    from holdfast.knowledge.readings import Reading as Reading
    from holdfast.knowledge.readings import Section as Section

__getattr__ = lazy_exports(
    __name__,
    {
        "CollectionCount": "holdfast.knowledge.document",
        "Document": "holdfast.knowledge.document",
        "DocumentChunk": "holdfast.knowledge.readings",
        "DocumentStatus": "holdfast.knowledge.document",
        "ErasedKnowledge": "holdfast.knowledge.document",
        "IngestJob": "holdfast.knowledge.job",
        "JobState": "holdfast.knowledge.job",
        "Knowledge": "holdfast.knowledge.knowledge",
        "Outline": "holdfast.knowledge.readings",
        "PassageHits": "holdfast.knowledge.hits",
        "Reading": "holdfast.knowledge.readings",
        "Section": "holdfast.knowledge.readings",
    },
)
