"""Opens the part of the audit that all tenants share, and composes the part of each tenant."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakSet

from holdfast.audit.audit import Audit
from holdfast.audit.gauges import AuditGauges
from holdfast.audit.heads import HeadPublication, Post
from holdfast.audit.retention import AuditRetention
from holdfast.audit.sealer import AuditSealer
from holdfast.audit.writer import AuditWriter
from holdfast.core.audit_settings import AuditSettings
from holdfast.postgres.database import Database, Postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAudit:
    """The settings of the audit, what seals the chains, and how far that is behind."""

    settings: AuditSettings
    sealer: AuditSealer
    gauges: AuditGauges
    writers: "WeakSet[AuditWriter]" = field(default_factory=WeakSet)  # pyright: ignore[reportUnknownVariableType]

    def of(self, database: Database) -> Audit:
        """Return the part of a tenant."""
        writer = AuditWriter(database, self.sealer.wake)
        self.writers.add(writer)
        return Audit(database, writer, enabled=self.settings.enabled)

    async def drain(self) -> None:
        """Wait until the entries of all tenants are committed."""
        for writer in tuple(self.writers):
            await writer.drain()


@asynccontextmanager
async def open_audit(*, settings: AuditSettings, postgres: Postgres, post: Post) -> AsyncGenerator[SharedAudit]:
    """Open it. `post` sends JSON to the webhook of the settings."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(AuditRetention(postgres.owner, settings))
        await stack.enter_async_context(HeadPublication(postgres, settings, post))
        sealer = await stack.enter_async_context(AuditSealer(postgres))
        shared = SharedAudit(settings=settings, sealer=sealer, gauges=AuditGauges(postgres.system))
        stack.push_async_callback(shared.drain)
        yield shared
