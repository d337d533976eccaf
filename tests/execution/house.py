"""Tools of a test's own, as rows, and all that runs them: here, or by a worker as far away as another process."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.bus.workers import Worker
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.execution.admission import Admission
from holdfast.execution.event_tools import EventTools
from holdfast.execution.executions import Executions
from holdfast.execution.executor import Executor
from holdfast.execution.function_runner import FunctionRunner
from holdfast.execution.outcomes import Outcome
from holdfast.execution.outputs import Outputs
from holdfast.execution.presence import ToolPresence
from holdfast.execution.runner import ToolRunner
from holdfast.execution.running_calls import RunningCalls
from holdfast.execution.served_tools import ServedTools
from holdfast.execution.usage import ToolUsage
from holdfast.execution.worker_runner import WorkerRunner
from holdfast.skills.function_tools import tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Kind, Mode, Tool
from holdfast.skills.tools import Tools

SERVED = "select count(*) from worker_presence where tenant_id = $1 and $2::text = any(skills)"
SECONDS = 10  # that a call has, on a busy machine, too


class House:
    """What runs tools of one tenant in a process."""

    def __init__(self, engine: Engine, *, modules: Sequence[str] = (), **runners: ToolRunner) -> None:
        self._functions = FunctionRunner(modules)
        given: dict[Kind, ToolRunner] = {"function": self._functions, **runners}  # pyright: ignore[reportAssignmentType]
        self.engine = engine
        self.tools = Tools(engine.database)
        self.usage = ToolUsage()
        self.presence = ToolPresence(engine.database)
        self.executor = Executor(
            given,
            admission=Admission(engine.database, self.tools, self.usage),
            events=WorkerRunner(engine.commands, Outputs(engine.database)),
            presence=self.presence,
        )
        self.executions = Executions(
            engine.database, self.executor, self.tools, running=RunningCalls(engine.database, engine.background)
        )
        self.functions: dict[str, Tool] = {}

    async def put(self, function: Callable[..., Any], *, mode: Mode = "inline", **options: Any) -> Tool:
        """Register a function as a tool; it can be called from this house."""
        declared = tool_of(function, mode=mode, **options)
        entry = await self.tools.put(
            declared.name,
            description=declared.description,
            parameters=declared.parameters,
            kind="function",
            access=declared.access,
            mode=mode,
            idempotent=declared.idempotent,
            timeout=declared.timeout,
            reference=declared.reference,
        )
        tool = self.functions[declared.name] = replace(declared, id=entry.id, version=entry.version)
        return tool

    def declare(self) -> None:
        """Have the functions be found by whoever calls them by their rows."""
        self._functions.declare(self.functions.values())

    async def run(self, tool: Tool, given: Mapping[str, Any] | None = None, **options: Any) -> Outcome:
        """What comes of a call that is part of no turn."""
        run = options.pop("run", None) or alone()
        limits: dict[str, Any] = {"timeout": SECONDS, "max_output_bytes": 64_000, **options}
        return await self.executor.run(tool, given or {}, run, **limits)

    def worker(self, *tools: str) -> Worker:
        """A worker that serves the functions which go by event, and the tools that it declares."""
        engine = self.engine
        more = EventTools(
            self.executor,
            self.tools,
            engine.database,
            functions=self.functions,
            imports=self._functions.imports,
            served=ServedTools.parse(tools),
            max_record_bytes=engine.config.bus.max_record_bytes,
        )
        return Worker(engine._execution.workers, {}, more=more.skills)  # pyright: ignore[reportPrivateUsage]

    async def present(self, name: str) -> None:
        """Wait until a worker says that it serves a tool."""
        async with asyncio.timeout(3 * SECONDS):
            while not await self.engine.database.value(SERVED, name):  # noqa: ASYNC110 - rows tell
                await asyncio.sleep(0.01)


def alone(agent: str | None = None) -> Run:
    """A call that is part of no turn."""
    id = str(uuid7())
    return Run("ann", agent, None, None, None, id, f"execution:{id}")


def in_turn(agent: str | None = None) -> Run:
    """A call that is part of a turn."""
    run, id = uuid7(), "call-1"
    return Run("ann", agent, "web-1", uuid7(), run, id, f"{run}:1:{id}")
