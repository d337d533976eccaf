"""The executor: runs tools with the runner of their kind, here or in a worker, within limits of time and output."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from time import monotonic
from typing import Any
from uuid import UUID

from holdfast.core.errors import Forbidden, RateLimited, Unavailable
from holdfast.core.shares import Shares
from holdfast.execution.admission import Admission
from holdfast.execution.outcomes import MAX_WHOLE_BYTES, Outcome, outcome_of
from holdfast.execution.policies.calls import ExecutorCall
from holdfast.execution.policies.policy import Policy, chain
from holdfast.execution.presence import ToolPresence
from holdfast.execution.runner import Result, ToolRunner
from holdfast.execution.worker_runner import NotTaken, WorkerRunner
from holdfast.skills.arguments import ArgumentRefusal
from holdfast.skills.run import Run
from holdfast.skills.tool import SCRIPTS, Kind, Mode, Tool

MARGIN = 5.0  # seconds beyond a call's time limit that it takes to end a call in a worker or in the sandbox

_has_place: ContextVar[bool] = ContextVar("holdfast_tool_has_place", default=False)


class Executor:
    """Runs tools of one tenant. With `runners` alone, it runs tools that have no row, in this process."""

    def __init__(
        self,
        runners: Mapping[Kind, ToolRunner],
        *,
        admission: Admission | None = None,
        events: WorkerRunner | None = None,
        presence: ToolPresence | None = None,
        max_whole_bytes: int = MAX_WHOLE_BYTES,
        places: Shares | None = None,
        policies: Sequence[Policy[ExecutorCall]] = (),
        argument_policies: Sequence[Policy[ExecutorCall]] = (),
    ) -> None:
        self._runners = runners
        self._places = places  # of calls in this process
        self._admission = admission
        self._events = events
        self._presence = presence
        self._govern = chain(policies, self._admit)
        self._run_admitted = chain(argument_policies, self._run)
        self._max_whole_bytes = max_whole_bytes

    def runs(self, kind: Kind) -> bool:
        """Whether this process can run tools of a kind."""
        return kind in self._runners

    async def mode(self, tool: Tool) -> Mode:
        """Return where a call of the tool goes now.

        A Java tool always goes to a worker. By default, a function runs here, and a tool of any other kind goes to a
        worker if one serves it.
        """
        if tool.kind == "java":
            return "event"
        if tool.mode is not None:
            return tool.mode
        if tool.kind == "function" or self._events is None or self._presence is None:
            return "inline"
        return "event" if await self._presence.serves(tool.name) else "inline"

    async def run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        run: Run,
        *,
        timeout: float,
        max_output_bytes: int,
        skill: UUID | None = None,
        mode: Mode | None = None,
        awaited: bool = False,
        admitted: bool = False,
    ) -> Outcome:
        """Run a tool with checked arguments. Wait at most `timeout` seconds, or the tool's own time limit if shorter.

        `skill` is the one that disclosed the tool. `mode` is the answer of `mode` from when the call was recorded.
        `awaited`: a worker already has the call under the same key; only wait for it. `admitted`: the caller has
        already checked that the tool may be called, by its own copy of the registry. Other calls pass the policies. A
        refusal is an outcome that the model reads; the caller of a direct call gets the error.
        """
        call = ExecutorCall(tool, arguments, run, timeout, max_output_bytes, skill, mode, awaited)
        if admitted:
            return await self._run(call)
        try:
            return await self._govern(call)
        except (Forbidden, RateLimited) as error:
            if run.run_id is None:
                raise
            text = str(error) if isinstance(error, Forbidden) else f"{tool.name} was not called: {error}"
            return Outcome.refusal(text, code=error.code)

    async def _admit(self, call: ExecutorCall) -> Outcome:
        """Run a call if the registry admits it."""
        if not call.resumed and self._admission is not None and call.tool.id is not None:
            found = await self._admission.admit(call.tool, call.arguments, call.run, skill=call.skill)
            if isinstance(found, ArgumentRefusal):
                return Outcome.refusal(found.text)
            call = replace(call, tool=found[0], arguments=found[1])
        return await self._run_admitted(call)

    async def _run(self, call: ExecutorCall) -> Outcome:
        tool, arguments, run, awaited = call.tool, call.arguments, call.run, call.resumed
        chosen_mode: Mode = "event" if awaited else call.mode or await self.mode(tool)
        limit = call.timeout if tool.timeout is None else min(call.timeout, tool.timeout)

        async def work() -> Result:
            if chosen_mode == "inline":
                return await self._inline(tool, arguments, run, timeout=limit)
            return await self._by_event(tool, arguments, run, timeout=limit, awaited=awaited)

        outcome = await outcome_of(
            tool,
            run,
            work,
            timeout=limit + MARGIN if chosen_mode == "event" or tool.kind in SCRIPTS else limit,
            max_output_bytes=call.max_output_bytes,
            max_whole_bytes=self._max_whole_bytes,
            ours=chosen_mode == "inline" and tool.kind != "function",
        )
        if self._admission is not None and tool.id is not None:
            self._admission.count(tool.id, failed=outcome.status != "done", latency_ms=outcome.latency_ms)
        return outcome

    async def result(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Run a tool in this process on behalf of a worker, and return its result. Errors are raised."""
        if self._admission is not None and tool.id is not None:
            admitted = await self._admission.admit(tool, arguments, run, skill=None)
            if isinstance(admitted, ArgumentRefusal):
                return Result(admitted.text, failed=True)
            tool, arguments = admitted
        return await self._inline(tool, arguments, run, timeout=timeout)

    async def cancel(self, key: str) -> None:
        """Cancel the call with this key in its worker."""
        if self._events is not None:
            await self._events.cancel(key)

    async def _inline(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        runner = self._runners.get(tool.kind)
        if runner is None:
            raise Unavailable(
                f"this process cannot run tools of the kind {tool.kind}",
                next="Look at the tool with `holdfast tools show`.",
            )
        # A tool that calls another already has a place. If it had to wait for a second one, calls could deadlock.
        if self._places is None or _has_place.get():
            return await runner.run(tool, arguments, run, timeout=timeout)
        async with self._places.hold(timeout=timeout):
            token = _has_place.set(True)
            try:
                return await runner.run(tool, arguments, run, timeout=timeout)
            finally:
                _has_place.reset(token)

    async def _by_event(
        self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float, awaited: bool
    ) -> Result:
        if self._events is None:
            raise Unavailable(f"the tool {tool.name} needs a worker, and this process cannot send commands")
        if not awaited and tool.mode is None and self.runs(tool.kind):
            began = monotonic()
            try:
                return await self._events.run(tool, arguments, run, timeout=timeout, needed=False)
            except NotTaken:  # no worker has begun it, or it is too large to send
                return await self._inline(tool, arguments, run, timeout=max(0.1, timeout - monotonic() + began))
        if not awaited and tool.kind == "java" and tool.mode is None and not await self._is_served(tool):
            raise Unavailable(
                f"no worker serves the tool {tool.name}",
                why="it is written in Java, and only a Java worker can run it",
                next="Start a worker that has the tool, or set its mode to `event`, so that calls wait for a worker.",
            )
        return await self._events.run(tool, arguments, run, timeout=timeout)

    async def _is_served(self, tool: Tool) -> bool:
        return self._presence is not None and await self._presence.serves(tool.name)
