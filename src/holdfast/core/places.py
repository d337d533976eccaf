"""Places: what the engines of all tenants in a process share."""

import os

from holdfast.core.config import Config
from holdfast.core.shares import Shares, shared_by_tenant


def places_of(config: Config) -> tuple[Shares, Shares, Shares]:
    """How many tools, turns and searches of all tenants run in this process at once."""
    limits = config.limits
    return (
        shared_by_tenant(limits, "calls of tools", limits.tool_calls, setting="limits.tool_calls"),
        shared_by_tenant(limits, "turns of agents", config.agents.concurrency, setting="agents.concurrency"),
        shared_by_tenant(
            limits, "searches", limits.searches or max(2, len(os.sched_getaffinity(0))), setting="limits.searches"
        ),
    )
