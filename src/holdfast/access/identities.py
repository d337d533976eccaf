"""Identities: users, agents and sessions are known by any string, and each string has one uuid."""

from collections import OrderedDict
from typing import cast
from uuid import UUID

from holdfast.core.errors import NotFound
from holdfast.core.ids import Kind, TenantId, identity_id
from holdfast.core.names import stored_name
from holdfast.core.text import restore
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements

REMEMBERED = 10_000

sql = statements(__name__)


class Identities:
    """Gives every name its uuid, and every uuid its name back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored: OrderedDict[tuple[Kind, str], UUID] = OrderedDict()
        self._names: OrderedDict[tuple[Kind, UUID], str] = OrderedDict()

    async def tenant(self) -> TenantId:
        """The tenant that they belong to."""
        return await self._database.tenant()

    async def known_as(self, kind: Kind, name: str) -> UUID:
        """The uuid of a name that is only looked for: nothing is stored."""
        return identity_id(await self._database.tenant(), kind, name)

    async def id(self, kind: Kind, name: str, *, tx: Transaction | None = None) -> UUID:
        """The uuid of a name: itself where the name is one, else derived from it; stored, to be read back."""
        known = self._stored.get((kind, name))
        if known is not None:
            return known
        id = await self.known_as(kind, name)
        stored = stored_name(kind, name) if name else ""
        if tx is not None:  # which may be rolled back: it is not remembered
            await (await self._database.within(tx)).run(sql("store_identity"), kind, stored, id)
            return id
        await self._database.run(sql("store_identity"), kind, stored, id)
        self._stored[kind, name] = id
        if len(self._stored) > REMEMBERED:
            self._stored.popitem(last=False)
        return id

    async def name(self, kind: Kind, id: UUID, *, tx: Transaction | None = None) -> str:
        """The name a uuid stands for."""
        name = cast(str | None, await (await self._database.within(tx)).value(sql("identity_name"), kind, id))
        if name is None:
            raise NotFound(f"no {kind} has the id {id}")
        return restore(name)

    async def name_or_id(self, kind: Kind, id: UUID, *, tx: Transaction | None = None) -> str:
        """The name a uuid stands for; the uuid itself where nobody gave it one, as in rows that came by plain SQL."""
        known = self._names.get((kind, id))
        if known is None:
            try:
                known = self._names[kind, id] = await self.name(kind, id, tx=tx)
            except NotFound:
                return str(id)
            if len(self._names) > REMEMBERED:
                self._names.popitem(last=False)
        return known
