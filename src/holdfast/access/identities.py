"""Identities: users, agents and sessions are known by any string, and each string has one uuid."""

from collections import OrderedDict
from typing import cast
from uuid import UUID

from holdfast.core.errors import NotFound, TooLarge
from holdfast.core.ids import Kind, identity_id
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database
from holdfast.postgres.sql import statements

REMEMBERED = 10_000
MAX_NAME_BYTES = 2000  # names are part of keys, and an index holds no more than a third of a page

sql = statements(__name__)


class Identities:
    """Gives every name its uuid, and every uuid its name back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored: OrderedDict[tuple[Kind, str], UUID] = OrderedDict()

    async def id(self, kind: Kind, name: str) -> UUID:
        """The uuid of a name: itself where the name is one, else derived from it; stored, to be read back."""
        known = self._stored.get((kind, name))
        if known is not None:
            return known
        stored = store(name)
        if len(stored.encode()) > MAX_NAME_BYTES:
            raise TooLarge(
                f"the name of this {kind} is too long",
                why=f"it has {len(stored.encode())} bytes, at most {MAX_NAME_BYTES} are taken",
                next="use a shorter one, such as a hash of it",
            )
        id = identity_id(await self._database.tenant(), kind, name)
        await self._database.run(sql("store_identity"), kind, stored, id)
        self._stored[kind, name] = id
        if len(self._stored) > REMEMBERED:
            self._stored.popitem(last=False)
        return id

    async def name(self, kind: Kind, id: UUID) -> str:
        """The name a uuid stands for."""
        name = cast(str | None, await self._database.value(sql("identity_name"), kind, id))
        if name is None:
            raise NotFound(f"no {kind} has the id {id}")
        return restore(name)
