"""The gateway of one tenant: lists and calls tools for a caller."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.access.principals import MissingScope, Principal, with_included
from holdfast.audit.entries import AuditEntry, AuditOutcome, outcome_of_error
from holdfast.core.errors import Forbidden, NotFound
from holdfast.engine import Engine
from holdfast.execution.outcomes import Outcome
from holdfast.execution.policies.policy import Policy, chain
from holdfast.gateway.inventory import Inventory
from holdfast.gateway.offerings import Offerings
from holdfast.gateway.policies.approval import ApprovalPolicy
from holdfast.gateway.policies.arguments import ArgumentPolicy
from holdfast.gateway.policies.calls import GatewayCall
from holdfast.gateway.runs import CallerRun, run_of
from holdfast.gateway.source_offerings import SourceOfferings, SourceOffers
from holdfast.gateway.tool_search import resolve_call
from holdfast.gateway.views import CALL_TOOL, CallerView, ObjectCache
from holdfast.mcp.protocol import INVALID_PARAMS, NO_RESOURCE, McpError
from holdfast.skills.client import SILENT, Client, InputRequired

Read = TypeVar("Read")


def policies_of(engine: Engine) -> tuple[Policy[GatewayCall], ...]:
    """Return the policies of a tenant, in the order in which a call passes them."""
    return (*engine.call_policies, ArgumentPolicy(), engine.access_policy, ApprovalPolicy())


class Gateway:
    """Lists and calls tools for callers of one tenant; `offerings` are its resources and prompts."""

    def __init__(
        self,
        engine: Engine,
        inventory: Inventory,
        offerings: Offerings,
        policies: Sequence[Policy[GatewayCall]] | None = None,
    ) -> None:
        self.engine = engine
        self.inventory = inventory
        self.offerings = offerings
        self.cache = ObjectCache()
        self._sources = SourceOfferings(engine)
        self._settings = engine.config.gateway
        self._proceed = chain(policies_of(engine) if policies is None else policies, self._run)

    async def tools(self, caller: Principal) -> CallerView:
        """Return the tools that a caller sees."""
        return await self.inventory.view(caller)

    async def sources(self, caller: Principal) -> Sequence[SourceOffers]:
        """Return the sources whose prompts and resources a caller sees."""
        view = await self.inventory.view(caller)
        return await self._sources.seen_by(view, self.inventory.revision)

    async def call(
        self,
        caller: Principal,
        name: str,
        arguments: Mapping[str, Any],
        *,
        client: Client = SILENT,
        timeout: float | None = None,
    ) -> Outcome:
        """Call a tool by a name that the caller sees; a failed call is an outcome, too.

        Raises NotFound if the caller sees no such tool, MissingScope if the caller would see it with more scopes,
        Forbidden if a person has to allow the call and has not, and InputRequired if the call waits for its client.
        """
        view = await self.inventory.view(caller)
        listed = view.by_name.get(name)
        if listed is None:
            await self.record_unseen(caller, name, arguments, NotFound.code)
            raise unknown_tool(name)
        if listed.name == CALL_TOOL:
            found = resolve_call(view, arguments)
            if isinstance(found, Outcome):
                await self.record_unseen(caller, name, arguments, found.code or "", tool=arguments.get("name"))
                return found
            listed, arguments = found
        limit = self._settings.timeout if timeout is None else min(timeout, self._settings.timeout)
        return await self._proceed(GatewayCall(listed, arguments, caller, view, limit, client))

    async def require_scopes_for(self, name: object, caller: Principal) -> None:
        """Raise MissingScope if the caller does not see a tool, but would with a user's scopes that its issuer grants.

        A tool that only an admin sees looks missing: who is an admin is not a matter of what a client has asked for.
        """
        for scope in ("read", "write"):
            if scope in caller.grantable and scope not in caller.scopes:
                wider = replace(caller, scopes=caller.scopes | with_included([scope]))
                if name in (await self.inventory.view(wider)).by_name:
                    caller.require(scope)

    async def run_for(self, caller: Principal, client: Client = SILENT) -> CallerRun:
        """Return a run in which a caller reads something, such as a resource or a prompt.

        Raises Forbidden if the caller acts for an agent that does not exist or is disabled.
        """
        view = await self.inventory.view(caller)
        if view.absent:
            raise Forbidden(
                "this caller has no access",
                why=f"there is no agent {caller.agent!r:.200}, or it is disabled",
                next="Enable it, or use the key of another agent.",
            )
        return run_of(caller, client, view, seconds=self._settings.timeout)

    async def audited(self, caller: Principal, action: str, target: str, work: Callable[[], Awaitable[Read]]) -> Read:
        """Read something for a caller, such as a resource or a prompt, and record it in the audit."""
        entry = AuditEntry(
            action=action, target=target, user=caller.user, actor=caller.actor, agent=caller.agent, key=caller.key
        )
        return await self.engine.audit.recorded(
            lambda: entry, work, outcome_of=_outcome_of_read, stops=(InputRequired,)
        )

    async def record_unseen(
        self, caller: Principal, name: str, arguments: Mapping[str, Any], code: str, *, tool: object = None
    ) -> None:
        """Record a call of a tool that the caller does not see, and raise MissingScope if it would with more scopes.

        `tool` is the one that was to be called by `call_tool`.
        """
        try:
            await self.require_scopes_for(name if tool is None else tool, caller)
        except MissingScope as missing:
            await self._record_refusal(caller, name, arguments, missing.code)
            raise
        await self._record_refusal(caller, name, arguments, code)

    async def _record_refusal(self, caller: Principal, name: str, arguments: Mapping[str, Any], code: str) -> None:
        await self.engine.audit_policy.record_refusal(
            name, arguments, code, user=caller.user, agent=caller.agent, key=caller.key, actor=caller.actor
        )

    async def _run(self, call: GatewayCall) -> Outcome:
        return await self.engine.recorder.run(
            call.listed.tool,
            call.arguments,
            run_of(call.caller, call.client, call.view, seconds=call.timeout),
            timeout=call.timeout,
            max_output_bytes=self._settings.max_result_bytes,
        )


def _outcome_of_read(error: BaseException) -> tuple[AuditOutcome, str]:
    match error:
        case InputRequired():
            return "waiting", ""
        case McpError() if error.code in (NO_RESOURCE, INVALID_PARAMS):
            return "refused", NotFound.code
        case McpError():
            return "failed", ""
        case _:
            return outcome_of_error(error)


def unknown_tool(name: str) -> NotFound:
    """Return the error for a tool that the caller does not see. It does not reveal whether others see it."""
    return NotFound(f"there is no tool {name!r:.200}", next="`tools/list` lists the tools.")
