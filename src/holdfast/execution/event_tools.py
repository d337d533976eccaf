"""Event tools: registered tools that a worker serves like handlers. It runs them, and sends the results."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any
from uuid import UUID

from holdfast.bus.handlers import Handler, current_command
from holdfast.bus.workers import FINAL
from holdfast.core.errors import InvalidInput
from holdfast.core.text import dumps, render
from holdfast.execution.executor import Executor
from holdfast.execution.outcomes import Failed, off_loop, plain_of, reason_of, run_app_code, trace_of
from holdfast.execution.outputs import Outputs
from holdfast.execution.runner import IN_DOUBT, Result
from holdfast.execution.served_tools import ServedTools
from holdfast.execution.worker_runner import (
    ASIDE,
    TIMEOUT,
    WorkerAnswer,
    answer_for,
    commands_of,
    correlation_id,
    pack_answer,
    run_of,
)
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements
from holdfast.skills.arguments import ArgumentRefusal, check
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools

MOST = 2000  # tools per worker
ANYWAY = 10.0  # seconds after which the rows are read again, even if the registry's revision is the same
USUAL = 120.0  # seconds; the default time limit of a call
NOTHING = ServedTools()
ENVELOPE = 10_000  # bytes of a completion besides the result

sql = statements(__name__)
log = logging.getLogger(__name__)


class EventTools:
    """Offers the registered tools that a worker serves.

    `functions` are the event tools that this program declares, by name. `imports` says whether another function that a
    row names may be imported. `served` are the tools of other kinds.
    """

    def __init__(
        self,
        executor: Executor,
        tools: Tools,
        database: Database,
        *,
        functions: Mapping[str, Tool] | None = None,
        imports: Callable[[str], bool] = lambda _: False,
        served: ServedTools = NOTHING,
        max_record_bytes: int,
    ) -> None:
        self._executor = executor
        self._tools = tools
        self._database = database
        self._outputs = Outputs(database)
        self._functions: Mapping[str, Tool] = {} if functions is None else functions
        self._imports = imports
        self._served = served
        self._most = max_record_bytes - ENVELOPE
        self._revision: int | None = None
        self._read = 0.0
        self._skills: dict[str, Handler] = {}
        self._ids: dict[str, UUID] = {}

    async def skills(self) -> Mapping[str, Handler]:
        """Return the current tools. Read the rows again if the registry's revision has changed or they are old."""
        revision: int = await self._database.value(sql("revision"))
        now = monotonic()
        if revision == self._revision and now - self._read < ANYWAY:
            return self._skills
        served = self._served
        rows = await self._database.all(sql("event_tools"), MOST, served.kinds, served.sources, served.names)
        self._ids = {row["name"]: row["tool_id"] for row in rows if self._can_run(row)}
        self._skills = {name: self._skills.get(name) or self._skill(name) for name in self._ids}
        self._revision, self._read = revision, now
        return self._skills

    def _can_run(self, row: Row) -> bool:
        if row["kind"] == "function":
            return row["name"] in self._functions or self._imports(row["reference"] or "")
        return self._executor.runs(row["kind"])

    def _skill(self, name: str) -> Handler:
        async def work(**arguments: Any) -> Any:
            return await self._work(name, arguments)

        return Handler(name, work, attempts=1)

    async def _work(self, name: str, arguments: dict[str, Any]) -> Any:
        command = current_command()
        from_executor = (
            FINAL in command.headers
        )  # by an executor, which has checked the arguments and expects a `WorkerAnswer`
        tool = await self._tool(name)
        checked: Mapping[str, Any] | ArgumentRefusal = arguments if from_executor else check(tool, arguments)
        if isinstance(checked, ArgumentRefusal):
            raise InvalidInput(checked.text)
        limit = _seconds(command.headers.get(TIMEOUT), tool)
        run = run_of(command)
        try:
            result: Result = await run_app_code(
                lambda: self._executor.result(tool, checked, run, timeout=limit),
                timeout=limit,
                name=f"the tool {name}",
                next="" if tool.idempotent else IN_DOUBT,
            )
            value = result.value
            if not result.plain:
                result = replace(result, value=await off_loop(value, lambda: plain_of(value)))
        except Failed as failed:
            log.warning("the tool %s failed for %s: %s", name, command.correlation_id, trace_of(failed.error))
            raise InvalidInput(reason_of(failed.error)) from None
        if from_executor:
            return await self._fit_for_sending(result, command.correlation_id, run.key)
        if result.failed:
            raise InvalidInput(f"{name} failed", why=reason_of(InvalidInput(render(result.value).decode())))
        return result.value

    async def _tool(self, name: str) -> Tool:
        id = self._ids.get(name)
        tool = None if id is None else await self._tools.current(id)
        if tool is None:
            raise InvalidInput(f"the tool {name} no longer exists")
        declared = self._functions.get(name)
        return tool if declared is None else replace(tool, function=declared.function)

    async def _fit_for_sending(self, result: Result, id: str, key: str) -> WorkerAnswer:
        """Return an answer that fits into a completion. If the result is too large, store it with the execution."""
        answer = answer_for(result, id)
        if await off_loop(answer.value, lambda: self._fits(answer)):
            return answer
        stored_under = correlation_id(key) if id in commands_of(key) else id
        content = await off_loop(answer.value, lambda: pack_answer(answer))
        if not await self._outputs.put_aside(stored_under, content, ASIDE):
            size = len(content)
            raise InvalidInput(f"its result is too large: it has {size:,} bytes, the limit is {self._most:,}")
        return WorkerAnswer(id, aside=True)

    def _fits(self, answer: WorkerAnswer) -> bool:
        size = len(answer.whole or b"") * 4 // 3 + len(render([answer.value, answer.mcp]))
        return size <= self._most and len(dumps(answer).encode()) <= self._most


def _seconds(header: str | None, tool: Tool) -> float:
    try:
        seconds = float(header) if header else USUAL
    except ValueError:
        seconds = USUAL
    return seconds if tool.timeout is None else min(seconds, tool.timeout)
