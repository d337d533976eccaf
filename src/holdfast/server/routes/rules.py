"""Access rules: their text, tests of it, and explanations of calls. Changing them needs the scope `admin`."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.access.principals import USER_SCOPES, Principal, Scope
from holdfast.core.errors import Conflict, NotFound, TooLarge
from holdfast.gateway.explain import Explanation, explain_call
from holdfast.server.fields import ShortName, ZonedMoment, documented
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.skills.rules.access_rules import MAX_CALLS, ChangedDecision, StoredRules
from holdfast.skills.rules.rule import AccessRule, Effect
from holdfast.skills.rules.trials import RuleTrial

operations = ApiOperations("rules")

RulesVersion = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Wording = Annotated[str, documented(maxLength=4_000_000)]


class RuleSummary(msgspec.Struct, frozen=True):
    """An access rule. `line` is where it begins in the text. On trial it refuses nothing, and `trial` is what it would.

    `trial` is null if it is not on trial, or would have decided nothing otherwise.
    """

    name: str
    effect: Effect
    on_trial: bool
    text: str
    because: str
    line: int
    trial: RuleTrial | None


class RulesDetail(msgspec.Struct, frozen=True):
    """The access rules of the tenant: their text, and each rule. Version 0: there are none.

    `default` is what happens to calls about which no rule says anything, and `default_trial` is what
    `default dry-run deny` would have refused. `warnings` name tools, sources and agents that do not exist.
    """

    text: str
    version: int
    updated_at: datetime | None
    updated_by: str
    default: Effect
    default_on_trial: bool
    default_trial: RuleTrial | None
    rules: list[RuleSummary]
    warnings: list[str]


class RulesChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole text of the rules. With `version`, it fails if they have changed since."""

    text: Wording
    version: RulesVersion | None = None


class RulesAddition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules to add at the end, such as `nights: deny tool "refund" between 22:00 and 06:00`."""

    rules: Wording


class RulesTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules to test on the latest `calls` calls. They are not stored."""

    text: Wording
    calls: Annotated[int, msgspec.Meta(ge=1, le=MAX_CALLS)] = 1000


class RulesTest(msgspec.Struct, frozen=True):
    """How many calls there were, and those that these rules would decide otherwise than the current ones."""

    calls: int
    changed: list[ChangedDecision]
    rules: int
    warnings: list[str]


class CallToExplain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool: by the caller, or for an admin by a `user`, for an `agent`, with the id of a `key`.

    Without `arguments`, they are not checked. `at` is the time of the call, by default now. `scopes` are those of the
    user, by default read and write.
    """

    tool: ShortName
    user: ShortName | None = None
    agent: ShortName | None = None
    key: UUID | None = None
    scopes: tuple[Scope, ...] | None = None
    arguments: dict[str, Any] | None = None
    at: ZonedMoment | None = None


@operations.declare("GET", "/api/gateway/rules", needs="admin")
async def get_rules(call: ApiCall) -> RulesDetail:
    """Get the access rules: the text, and each rule with what it would have refused on trial."""
    return await _detail(call, await call.engine.rules.get())


@operations.declare("PUT", "/api/gateway/rules", needs="admin", errors=[Conflict, TooLarge], audit=["text", "version"])
async def put_rules(call: ApiCall, body: RulesChange) -> RulesDetail:
    """Replace the access rules. They take effect on every node within a second."""
    stored = await call.engine.rules.put(body.text, version=body.version, by=call.principal.user)
    return await _detail(call, stored)


@operations.declare("POST", "/api/gateway/rules", needs="admin", errors=[Conflict, TooLarge], audit=["rules"])
async def add_rules(call: ApiCall, body: RulesAddition) -> RulesDetail:
    """Add access rules at the end of the text."""
    return await _detail(call, await call.engine.rules.add(body.rules, by=call.principal.user))


@operations.declare("GET", "/api/gateway/rules/{name}", needs="admin", errors=[NotFound])
async def get_rule(call: ApiCall, name: str) -> RuleSummary:
    """Get an access rule, and what it would have refused on trial."""
    rule = await call.engine.rules.rule(name)
    return _summary(rule, (await call.engine.rules.trials()).get(name))


@operations.declare("DELETE", "/api/gateway/rules/{name}", needs="admin", status=204, errors=[NotFound, Conflict])
async def remove_rule(call: ApiCall, name: str) -> None:
    """Remove an access rule. The rest of the text is unchanged."""
    await call.engine.rules.remove(name, by=call.principal.user)


@operations.declare("POST", "/api/gateway/rule-tests", needs="admin", errors=[TooLarge])
async def try_rules(call: ApiCall, body: RulesTrial) -> RulesTest:
    """Check access rules without storing them, and list the latest calls that they would decide otherwise."""
    written = await call.engine.rules.parse(body.text)
    calls, changed = await call.engine.rules.test(written, calls=body.calls)
    return RulesTest(calls, changed, len(written.rules), await call.engine.rules.warnings(written))


@operations.declare("POST", "/api/gateway/explain", needs="read", errors=[NotFound])
async def explain(call: ApiCall, body: CallToExplain) -> Explanation:
    """Explain why a call of a tool is allowed or refused. Only an admin can ask for others."""
    caller = await _caller(call, body)
    gateway = call.gateways.of(call.principal.tenant)
    whole = call.authorization.is_admin
    return await explain_call(gateway, caller, body.tool, body.arguments, at=body.at, whole=whole)


async def _caller(call: ApiCall, body: CallToExplain) -> Principal:
    """Return the principal whose call is explained."""
    own = call.principal
    if (body.user, body.agent, body.key, body.scopes) == (None, None, None, None):
        return own
    own.require("admin")
    if body.key is not None:
        key = next((each for each in await call.engine.keys.list(own.tenant) if each.id == body.key), None)
        if key is None or key.revoked_at is not None or (key.expires_at and key.expires_at <= datetime.now(UTC)):
            raise NotFound(f"there is no valid key {body.key}", next="List keys with `holdfast keys ls`.")
        return Principal(own.tenant, key.principal, frozenset(key.scopes), key.agent, key=key.id)
    scopes = USER_SCOPES if body.scopes is None else frozenset(body.scopes)
    return Principal(own.tenant, body.user or own.user, scopes, body.agent)


async def _detail(call: ApiCall, stored: StoredRules) -> RulesDetail:
    written, trials = await call.engine.rules.parse(stored.text), await call.engine.rules.trials()
    return RulesDetail(
        stored.text,
        stored.version,
        stored.updated_at,
        stored.updated_by,
        written.default.effect,
        written.default.on_trial,
        trials.get("default"),
        [_summary(rule, trials.get(rule.name)) for rule in written.rules],
        await call.engine.rules.warnings(written),
    )


def _summary(rule: AccessRule, trial: RuleTrial | None) -> RuleSummary:
    return RuleSummary(rule.name, rule.effect, rule.on_trial, rule.text, rule.because, rule.line, trial)
