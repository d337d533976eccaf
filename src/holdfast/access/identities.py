"""Identities: the UUIDs of users, agents and sessions. Callers use any string as a name; each name has one UUID."""

from collections import OrderedDict
from collections.abc import Collection
from time import monotonic
from typing import TypeVar, cast
from uuid import UUID

from holdfast.core.errors import NotFound
from holdfast.core.ids import Kind, TenantId, identity_id
from holdfast.core.names import stored_name
from holdfast.core.text import restore
from holdfast.postgres.database import Database, Transaction
from holdfast.postgres.sql import statements

REMEMBERED = 10_000
NAMELESS = 30.0  # seconds for which a UUID is cached as nameless: another process may store its name

Key = TypeVar("Key")
Value = TypeVar("Value")

sql = statements(__name__)


class Identities:
    """Maps names to UUIDs and UUIDs to names. Caches both."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored: OrderedDict[tuple[Kind, str], UUID] = OrderedDict()
        self._names: OrderedDict[tuple[Kind, UUID], str] = OrderedDict()
        self._nameless: OrderedDict[tuple[Kind, UUID], float] = OrderedDict()  # and the time of the look-up

    async def tenant(self) -> TenantId:
        """Return the tenant of these identities."""
        return await self._database.tenant()

    async def find_id(self, kind: Kind, name: str) -> UUID:
        """Return the UUID of a name, for a look-up. Stores nothing."""
        return identity_id(await self._database.tenant(), kind, name)

    async def id(self, kind: Kind, name: str, *, tx: Transaction | None = None) -> UUID:
        """Return the UUID of a name: the name itself if it is a UUID, otherwise derived from it. Stores the name."""
        known = self._stored.get((kind, name))
        if known is not None:
            return known
        id = await self.find_id(kind, name)
        stored = stored_name(kind, name) if name else ""
        if tx is not None:  # may be rolled back: the name is not cached
            await (await self._database.within(tx)).run(sql("store_identity"), kind, stored, id)
            tx.after_commit.append(lambda: self._mark_named(kind, id))
        else:
            await self._database.run(sql("store_identity"), kind, stored, id)
            _keep(self._stored, (kind, name), id)
        self._mark_named(kind, id)
        return id

    async def name(self, kind: Kind, id: UUID, *, tx: Transaction | None = None) -> str:
        """Return the name of a UUID."""
        name = cast(str | None, await (await self._database.within(tx)).value(sql("identity_name"), kind, id))
        if name is None:
            raise NotFound(f"no {kind} has the id {id}")
        return restore(name)

    async def names(self, kind: Kind, ids: Collection[UUID], *, tx: Transaction | None = None) -> dict[UUID, str]:
        """Return the names of UUIDs. A UUID without a stored name, as in rows written by plain SQL, is its own name.

        Reads the names that are not cached in one statement.
        """
        names = {id: name for id in ids if (name := self._cached_name(kind, id)) is not None}
        missing = {id for id in ids if id not in names}
        if missing:
            rows = await (await self._database.within(tx)).all(sql("identity_names"), kind, list(missing))
            stored = {row["id"]: restore(row["name"]) for row in rows}
            for id in missing:
                names[id] = stored.get(id, str(id))
                if names[id] == str(id):  # a name may still be stored
                    _keep(self._nameless, (kind, id), monotonic())
                else:
                    _keep(self._names, (kind, id), names[id])
        return names

    def _cached_name(self, kind: Kind, id: UUID) -> str | None:
        seen = self._nameless.get((kind, id))
        if seen is not None and monotonic() < seen + NAMELESS:
            return str(id)
        return self._names.get((kind, id))

    def _mark_named(self, kind: Kind, id: UUID) -> None:
        self._nameless.pop((kind, id), None)


def _keep(remembered: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    remembered[key] = value
    remembered.move_to_end(key)
    if len(remembered) > REMEMBERED:
        remembered.popitem(last=False)
