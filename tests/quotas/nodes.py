"""Nodes that share the limits of a tenant: each has the quotas that a process has, in one process."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from holdfast.core.errors import RateLimited
from holdfast.core.limits import QuotaSettings
from holdfast.engine import Engine
from holdfast.postgres.database import Database
from holdfast.quotas.composition import TenantQuotas, default_limits
from holdfast.quotas.rate_limits import AdmittedCall


class CountedDatabase(Database):
    """The database of a tenant, which counts its statements."""

    def __init__(self, database: Database) -> None:
        vars(self).update(vars(database))
        self.statements = 0

    async def _call(self, *args: Any, **options: Any) -> Any:
        self.statements += 1
        return await super()._call(*args, **options)


class Node:
    """One process of several."""

    def __init__(self, database: Database, settings: QuotaSettings) -> None:
        self.database = CountedDatabase(database)
        self.quotas = TenantQuotas(self.database, settings, default_limits(settings), longest_call=600)

    async def admit(
        self, user: str | None = "ann", *, agent: str | None = None, key: UUID | None = None, tool: str = "track"
    ) -> AdmittedCall:
        """Admit a call, as the policy does."""
        caller = user, agent, key, tool
        return self.quotas.rates.try_admit(caller) or await self.quotas.rates.admit(caller)

    async def tries(self, calls: int, user: str | None = "ann", **call: Any) -> int:
        """How many of so many calls are admitted."""
        outcomes = Counter[bool]()
        for _ in range(calls):
            try:
                (await self.admit(user, **call)).end()
            except RateLimited:
                outcomes[False] += 1
            else:
                outcomes[True] += 1
        return outcomes[True]

    async def set(self, *rules: str, as_operator: bool = False) -> None:
        """Set limits."""
        for rule in rules:
            await self.quotas.limits.set(rule, by="boss", as_operator=as_operator)


class Nodes:
    """Makes nodes, and closes them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._made: list[Node] = []

    async def make(self, *, tenant: str = "default", defaults: Sequence[str] = (), lease: float = 10) -> Node:
        """A node of a tenant."""
        settings = QuotaSettings(limits=tuple(defaults), lease=lease)
        id = await self._engine.tenants.id_of(tenant)
        node = Node(self._engine.postgres.tenant(id), settings)
        await node.quotas.limits.refresh()
        self._made.append(node)
        return node

    async def close(self) -> None:
        """Give back what is leased."""
        for node in self._made:
            await node.quotas.rates.close()
