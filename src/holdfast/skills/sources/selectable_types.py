"""Stores the types of GraphQL schemas that callers of tools can choose fields of."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from holdfast.core.text import render
from holdfast.core.threads import run_in_thread
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements
from holdfast.skills.sources.graphql.schema import OutputType, OutputTypes

REMEMBERED = 20  # schemas; a large one takes some megabytes

sql = statements(__name__)


class SelectableTypes:
    """The types of the sources of one tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[str, tuple[bytes, OutputTypes]] = OrderedDict()

    async def store(self, source_id: UUID, types: Mapping[str, Any], tx: Transaction) -> None:
        """Store the types of a source, if they are new."""
        text = await run_in_thread(lambda: render(types), name="holdfast types")
        await tx.run(sql("put_selectable_types"), source_id, hashlib.sha256(text).digest(), text)

    async def of(self, source: str) -> OutputTypes:
        """Return the types of a source. They are read again only if they have changed."""
        known = self._known.get(source)
        row = await self._database.one(sql("selectable_types"), source, known[0] if known else b"")
        if row is None:
            return {}
        if known is None or row["hash"] != known[0]:
            text: bytes = row["types"]
            types = await run_in_thread(
                lambda: msgspec.json.decode(text, type=dict[str, OutputType]), name="holdfast types"
            )
            known = (row["hash"], types)
        self._known[source] = known  # again, if it has been dropped meanwhile
        self._known.move_to_end(source)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return known[1]
