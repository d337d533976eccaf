"""The audit of tool calls: each call gets an entry, and its answer waits until the entry is committed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from time import perf_counter
from typing import Any, cast
from uuid import UUID

from holdfast.audit.audit import Audit
from holdfast.audit.entries import AuditEntry, AuditOutcome, json_of, outcome_of_error, rule_of
from holdfast.core.audit_settings import AuditSettings
from holdfast.execution.outcomes import Outcome
from holdfast.execution.policies.policy import GovernedCall
from holdfast.execution.redaction import REDACTED
from holdfast.execution.trimming import trimmed
from holdfast.skills.client import InputRequired

TOOL_CALL = "tool.call"
MAX_ARGUMENTS = 16_000  # bytes of kept arguments
DEEPEST = 32  # levels that are searched for arguments to redact; deeper values are left out


class KeptArguments:
    """Says of which tools the audit keeps the arguments, and removes those that it never keeps."""

    def __init__(self, settings: AuditSettings) -> None:
        self._tools = settings.keep_arguments
        self._names = tuple(name.lower() for name in settings.redact)

    def of(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Return the arguments to keep; None if only their hash is kept."""
        if not self._tools or not self._keeps(tool):
            return None
        return trimmed(self._redacted(arguments, 0), MAX_ARGUMENTS)

    def _keeps(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self._tools)

    def _redacted(self, value: Any, depth: int) -> Any:
        if depth == DEEPEST:
            return REDACTED
        if isinstance(value, Mapping):
            items = cast(Mapping[str, Any], value).items()
            return {
                name: REDACTED if self._never_kept(str(name)) else self._redacted(item, depth + 1)
                for name, item in items
            }
        if isinstance(value, list | tuple):
            return [self._redacted(item, depth + 1) for item in cast(Sequence[Any], value)]
        return value

    def _never_kept(self, name: str) -> bool:
        return any(fnmatchcase(name.lower(), pattern) for pattern in self._names)


class AuditPolicy:
    """Records every call: done, failed, refused by another policy, or cancelled.

    A call is refused before its tool runs while the audit cannot be written. If the entry cannot be written after the
    tool ran, the caller gets an error instead of the result.
    """

    def __init__(self, audit: Audit, settings: AuditSettings) -> None:
        self._audit = audit
        self._kept = KeptArguments(settings)

    async def apply(self, call: GovernedCall, proceed: Callable[[Any], Awaitable[Outcome]]) -> Outcome:
        """Proceed with a call, and record it."""
        audit = self._audit
        if not audit.enabled:
            return await proceed(call)
        await audit.check()
        began = perf_counter()
        try:
            outcome = await proceed(call)
        except asyncio.CancelledError:
            audit.record_later(self._entry(call, began, "cancelled"))
            raise
        except InputRequired:
            await audit.record(self._entry(call, began, "waiting"))
            raise
        except Exception as error:
            how, code = outcome_of_error(error)
            await audit.record(self._entry(call, began, how, code=code, rule=rule_of(error)))
            raise
        how = "refused" if outcome.refused else outcome.status
        await audit.record(self._entry(call, began, how, code=outcome.code or "", bytes_out=_size_of(outcome)))
        return outcome

    async def record_refusal(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        code: str,
        *,
        user: str | None,
        agent: str | None,
        key: UUID | None = None,
        actor: str | None = None,
    ) -> None:
        """Record a call that was refused before it came to the policies."""
        if self._audit.enabled:
            entry = self.entry(
                tool, arguments, user=user, agent=agent, key=key, actor=actor, outcome="refused", code=code
            )
            await self._audit.record(entry)

    def _entry(
        self,
        call: GovernedCall,
        began: float,
        outcome: AuditOutcome,
        *,
        code: str = "",
        rule: str = "",
        bytes_out: int | None = None,
    ) -> AuditEntry:
        return self.entry(
            call.tool.name,
            call.arguments,
            user=call.user,
            agent=call.agent,
            key=call.key,
            actor=call.actor,
            outcome=outcome,
            code=code,
            rule=rule,
            notes=tuple(call.notes),
            duration_ms=1000 * (perf_counter() - began),
            bytes_out=bytes_out,
        )

    def entry(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        user: str | None,
        agent: str | None,
        key: UUID | None,
        actor: str | None,
        outcome: AuditOutcome,
        code: str = "",
        rule: str = "",
        notes: tuple[str, ...] = (),
        duration_ms: float | None = None,
        bytes_out: int | None = None,
    ) -> AuditEntry:
        """Return the entry of a call. Its arguments are kept, or only hashed, as the settings say."""
        encoded = json_of(arguments)
        return AuditEntry(
            action=TOOL_CALL,
            target=tool,
            outcome=outcome,
            user=user,
            actor=actor,
            agent=agent,
            key=key,
            arguments=self._kept.of(tool, arguments),
            arguments_json=encoded,
            code=code,
            rule=rule,
            notes=notes,
            duration_ms=duration_ms,
            bytes_in=len(encoded),
            bytes_out=bytes_out,
        )


def _size_of(outcome: Outcome) -> int:
    if outcome.whole is not None:
        return len(outcome.whole)
    text = outcome.text
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
