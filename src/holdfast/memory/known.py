"""Known keys: what need not be remembered again, and what must not."""

from collections.abc import Collection
from hashlib import sha256

from holdfast.core.names import stored_name
from holdfast.core.text import restore
from holdfast.memory.owners import OwnerIds
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

sql = statements(__name__)


async def known_keys(database: Database, ids: OwnerIds, keys: Collection[str]) -> set[str]:
    """Those of `keys` whose memories the owner has, or had.

    Whoever reads a source again leaves them out: what is there needs no new vector, and what was deleted stays so.
    """
    stored = [stored_name("key", key) for key in keys]
    hashes = [sha256(key.encode()).digest() for key in stored]
    return {restore(row["key"]) for row in await database.all(sql("known"), ids.scope, ids.id, stored, hashes)}
