"""Documents whose chunks are stored without ingesting a file."""

from collections.abc import Sequence
from uuid import UUID, uuid4

import msgspec

from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.memory.graph.extraction import graph_of, key_of


async def add_document(engine: Engine, title: str, chunks: Sequence[str]) -> tuple[UUID, list[UUID]]:
    """Store a document of the organization, and link its chunks in the transaction, as ingestion does."""
    document, ids = uuid7(), [uuid7() for _ in chunks]
    async with engine.transaction() as tx:
        tenant = await tx.value("select $1::uuid")
        await tx.run(
            "insert into document (tenant_id, id, scope, owner, name, title, title_key)"
            " values ($1, $2, 'organization', $1, $3, $3, $4)",
            document,
            title,
            key_of(title),
        )
        for index, (id, text) in enumerate(zip(ids, chunks, strict=True)):
            await tx.run(
                "insert into chunk (tenant_id, document_id, chunk_index, id, first_page, char_start, char_end, tokens, length, language,"
                " digest, passages, content) values ($1, $2, $3, $4, $3 + 1, 0, length($5), 1, 1, 'en', $6, '{0,1}', $5)",
                document,
                index,
                id,
                text,
                uuid4(),
            )
        items = [
            {"memory": id, **graph}
            for index, (id, text) in enumerate(zip(ids, chunks, strict=True))
            if (graph := graph_of(text, title=title if index == 0 else None))
        ]
        await tx.run(
            "select holdfast.link_entities($1, 'organization', $2, $3, $4)",
            tenant,
            document,
            msgspec.json.encode(items).decode(),
        )
    return document, ids


async def remove_document(engine: Engine, document: UUID) -> None:
    """Remove a document with what the graph has of it."""
    async with engine.transaction() as tx:
        await tx.run("select holdfast.unlink_entities($1, null, $2)", document)
        await tx.run("delete from document where tenant_id = $1 and id = $2", document)


async def counts(engine: Engine) -> dict[str, int]:
    """Count the rows of the graph."""
    tables = ("entities", "memory_entities", "relationships", "relationship_sources", "entity_merges")
    return {
        table: await engine.database.value(f"select count(*) from {table} where tenant_id = $1") for table in tables
    }
