"""Known keys: keys of stored and of deleted memories, which an import leaves out."""

from collections.abc import Collection
from hashlib import sha256

from holdfast.core.names import stored_name
from holdfast.core.text import restore
from holdfast.memory.owners import OwnerIds
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

sql = statements(__name__)


async def known_keys(database: Database, ids: OwnerIds, keys: Collection[str]) -> set[str]:
    """Return those of `keys` that a memory of the owner has, or that a deleted one had.

    A repeated import of a source skips them: stored memories need no new vector, and deleted ones stay deleted.
    """
    stored = [stored_name("key", key) for key in keys]
    hashes = [sha256(key.encode()).digest() for key in stored]
    return {restore(row["key"]) for row in await database.all(sql("existing_keys"), ids.scope, ids.id, stored, hashes)}
