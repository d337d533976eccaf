"""Opens the part of quotas that all tenants share, and composes the part of each tenant."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID
from weakref import WeakValueDictionary

from holdfast.core.background import PeriodicJob
from holdfast.core.errors import BadSetting, InvalidInput
from holdfast.core.ids import TenantId
from holdfast.core.limits import QuotaSettings
from holdfast.postgres.database import Database, Postgres
from holdfast.quotas.budgets import TenantBudgets
from holdfast.quotas.limit import UsageLimit, parse_limit
from holdfast.quotas.limit_usage import LimitUsage, limit_usage
from holdfast.quotas.model_usage import DailyUsage, ModelUsageCounts, daily_usage
from holdfast.quotas.rate_limits import AdmittedCall, Caller, TenantRateLimits
from holdfast.quotas.sweeper import QuotaSweeper
from holdfast.quotas.tenant_limits import TenantLimits

LEAST_PAUSE, MOST_PAUSE = 0.05, 0.5  # seconds between two looks at what is leased


class TenantQuotas:
    """The quotas of one tenant in this process, whichever engine asks for them."""

    def __init__(
        self, database: Database, settings: QuotaSettings, defaults: Sequence[UsageLimit], *, longest_call: float
    ) -> None:
        self.limits = TenantLimits(database, defaults)
        self.rates = TenantRateLimits(database, self.limits, lease=settings.lease)
        self.budgets = TenantBudgets(database, self.limits, warn_at=settings.warn_percent / 100, lease=longest_call)


class Quotas:
    """Limits what one tenant uses, and counts it."""

    def __init__(self, shared: "SharedQuotas", database: Database) -> None:
        self._shared = shared
        self._database = database
        self._own: TenantQuotas | None = None

    def try_admit(self, caller: Caller) -> AdmittedCall | None:
        """Admit a call, or raise RateLimited. Return None if it has to wait: then call `admit`."""
        return None if self._own is None else self._own.rates.try_admit(caller)

    async def admit(self, caller: Caller) -> AdmittedCall:
        """Admit a call, or raise RateLimited. Wait for the database if nothing is leased."""
        return await (await self._quotas()).rates.admit(caller)

    async def admit_message(self, *, user: str | None, agent: str, key: UUID | None) -> None:
        """Count a message to an agent as a request, or raise RateLimited. It takes no slot for concurrent calls."""
        (await self.admit((user, agent, key, None))).end()

    async def limits(self) -> TenantLimits:
        """Return the limits of the tenant."""
        return (await self._quotas()).limits

    async def budgets(self) -> TenantBudgets:
        """Return the budgets of the tenant."""
        return (await self._quotas()).budgets

    def count(self, *, user: str | None, agent: str | None, model: str, input: int, output: int, cost: float) -> None:
        """Count what a model call used."""
        self._shared.usage.count(
            self._database, user=user, agent=agent, model=model, input=input, output=output, cost=cost
        )

    async def usage(self, *, limit: str | None = None, most: int) -> Sequence[LimitUsage]:
        """Return how much of each limit is used, or of the limits with one name."""
        found = (await self._quotas()).limits
        await found.refresh()
        chosen = [each for each in found.index.limits.values() if limit in (None, each.name)]
        return await limit_usage(self._database, chosen, most=most)

    async def model_usage(self, *, days: int, most: int) -> Sequence[DailyUsage]:
        """Return what the model calls of the last days used, newest first."""
        await self._shared.usage.flush()
        return await daily_usage(self._database, days=days, limit=most)

    async def _quotas(self) -> TenantQuotas:
        if self._own is None:
            self._own = self._shared.tenant(await self._database.tenant(), self._database)
        return self._own


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQuotas:
    """The limits of the settings, the usage of models, and the quotas of each tenant.

    `longest_call`: seconds after which a model call that has not ended has died.
    """

    settings: QuotaSettings
    longest_call: float
    defaults: Sequence[UsageLimit]
    usage: ModelUsageCounts
    tenants: WeakValueDictionary[TenantId, TenantQuotas]

    def of(self, database: Database) -> Quotas:
        """Return the quotas of a tenant."""
        return Quotas(self, database)

    def tenant(self, id: TenantId, database: Database) -> TenantQuotas:
        """Return the quotas of a tenant, which all its engines in this process share."""
        found = self.tenants.get(id)
        if found is None:
            found = self.tenants[id] = TenantQuotas(
                database, self.settings, self.defaults, longest_call=self.longest_call
            )
        return found

    def refusals(self, tenant: TenantId | None) -> Mapping[tuple[TenantId, str], int]:
        """Return how many calls each limit has refused in this process, of one tenant or of all."""
        return {
            (id, name): quotas.rates.refusals[name] + quotas.budgets.refusals[name]
            for id, quotas in list(self.tenants.items())
            if tenant in (None, id)
            for name in quotas.rates.refusals.keys() | quotas.budgets.refusals.keys()
        }

    def warnings(self, tenant: TenantId | None) -> Mapping[tuple[TenantId, str], int]:
        """Return how many warnings there were for each budget in this process, of one tenant or of all."""
        return {
            (id, name): count
            for id, quotas in list(self.tenants.items())
            if tenant in (None, id)
            for name, count in quotas.budgets.warnings.items()
        }


class LeaseJob(PeriodicJob):
    """Renews what is leased, and gives back what is not used."""

    def __init__(self, tenants: "WeakValueDictionary[TenantId, TenantQuotas]", settings: QuotaSettings) -> None:
        pause = min(MOST_PAUSE, max(LEAST_PAUSE, settings.lease / 6))
        super().__init__("renewal of leases of limits", pause=pause)
        self._tenants = tenants

    async def step(self) -> None:
        """Start the renewal for each tenant."""
        for quotas in list(self._tenants.values()):
            quotas.rates.tend()


@asynccontextmanager
async def open_quotas(
    *, settings: QuotaSettings, postgres: Postgres, longest_call: float
) -> AsyncGenerator[SharedQuotas]:
    """Open it. When it closes, what is leased goes back. `longest_call` is in seconds, as `SharedQuotas` says."""
    tenants: WeakValueDictionary[TenantId, TenantQuotas] = WeakValueDictionary()
    shared = SharedQuotas(
        settings=settings,
        longest_call=longest_call,
        defaults=default_limits(settings),
        usage=ModelUsageCounts(),
        tenants=tenants,
    )
    try:
        async with QuotaSweeper(postgres, settings), LeaseJob(tenants, settings):
            yield shared
    finally:
        for quotas in list(tenants.values()):
            await quotas.rates.close()
        await shared.usage.close()


def default_limits(settings: QuotaSettings) -> Sequence[UsageLimit]:
    """Return the limits of the settings."""
    try:
        return [parse_limit(text, by_operator=True) for text in settings.limits]
    except InvalidInput as error:
        raise BadSetting(f"the setting quotas.limits: {error.what}", why=error.why, next=error.next) from None
