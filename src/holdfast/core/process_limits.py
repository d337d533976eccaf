"""The limits that the engines of all tenants in a process share."""

import os

from holdfast.core.config import Config
from holdfast.core.limits import LimitSettings
from holdfast.core.shares import Shares, shared_by_tenant


def places_of(config: Config) -> tuple[Shares, Shares, Shares, Shares]:
    """Return the limits of tool calls, runs, searches and messages being stored, for all tenants of the process."""
    limits = config.limits
    return (
        shared_by_tenant(limits, "calls of tools", limits.tool_calls, setting="limits.tool_calls"),
        shared_by_tenant(limits, "turns of agents", config.agents.concurrency, setting="agents.concurrency"),
        searches_of(limits, cores=len(os.sched_getaffinity(0))),
        # With more, messages would only wait for each other at the database, at each of their steps.
        shared_by_tenant(
            limits, "messages that are being stored", config.database.pool_size, setting="database.pool_size"
        ),
    )


def searches_of(limits: LimitSettings, *, cores: int) -> Shares:
    """Return the limit of searches: one per core, as each keeps a core busy. A tenant leaves one for the others."""
    total = limits.searches or max(2, cores)
    alone = (total - 1) / total if total > 1 else 1.0
    return Shares(
        "searches",
        total,
        setting="limits.searches",
        tenant_share=min(limits.tenant_share, alone),
        user_share=limits.user_share,
    )
