"""Rate limits and budgets of the caller's tenant, and what was used of them. Needs the scope `admin`."""

from typing import Annotated

import msgspec

from holdfast.core.errors import NotFound
from holdfast.quotas.limit import name_of
from holdfast.quotas.limit_usage import LimitUsage
from holdfast.quotas.model_usage import DailyUsage
from holdfast.quotas.tenant_limits import StoredLimit
from holdfast.server.operations import ApiCall, ApiOperations

operations = ApiOperations("limits")

Rule = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Most = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Days = Annotated[int, msgspec.Meta(ge=1, le=3660)]


class LimitRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A limit to set, such as `each user: 60 requests per minute`.

    `as_operator`: it is the operator's limit for this tenant, which the tenant cannot change. This needs the scope
    `operator`.
    """

    rule: Rule
    as_operator: bool = False


class LimitList(msgspec.Struct, frozen=True):
    """The limits of the tenant, by name."""

    limits: list[StoredLimit]


class LimitUsageList(msgspec.Struct, frozen=True):
    """How much of each limit is used, those that are used most first."""

    usage: list[LimitUsage]


class ModelUsageList(msgspec.Struct, frozen=True):
    """What model calls used, newest day first."""

    usage: list[DailyUsage]


@operations.declare("GET", "/api/limits", needs="admin")
async def list_limits(call: ApiCall) -> LimitList:
    """List the rate limits and budgets of the tenant, by name."""
    return LimitList([*await (await call.engine.quotas.limits()).list()])


@operations.declare("PUT", "/api/limits", needs="admin", audit=["rule", "as_operator"])
async def set_limit(call: ApiCall, body: LimitRequest) -> StoredLimit:
    """Set a rate limit or a budget. It replaces the one with the same name, and takes effect within a second."""
    if body.as_operator:
        call.principal.require("operator")
    limits = await call.engine.quotas.limits()
    return await limits.set(body.rule, by=call.principal.user, as_operator=body.as_operator)


@operations.declare("DELETE", "/api/limits", needs="admin", status=204, errors=[NotFound])
async def remove_limit(call: ApiCall, name: Rule, as_operator: bool = False) -> None:
    """Remove a rate limit or a budget, by its name or its text."""
    call.details["name"] = name  # not the target, which is never erased: it can name a user
    if as_operator:
        call.principal.require("operator")
    limits = await call.engine.quotas.limits()
    await limits.remove(name, by=call.principal.user, as_operator=as_operator)


@operations.declare("GET", "/api/limits/usage", needs="admin")
async def limit_usage(call: ApiCall, name: Rule | None = None, limit: Most = 100) -> LimitUsageList:
    """List how much of each limit is used now, or of the limits with one name."""
    named = None if name is None else name_of(name)
    return LimitUsageList([*await call.engine.quotas.usage(limit=named, most=limit)])


@operations.declare("GET", "/api/limits/models", needs="admin")
async def model_usage(call: ApiCall, days: Days = 30, limit: Most = 100) -> ModelUsageList:
    """List what model calls used on the last days, by user, agent and model."""
    return ModelUsageList([*await call.engine.quotas.model_usage(days=days, most=limit)])
