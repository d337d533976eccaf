"""The runner of tools that are Python functions, in this process."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.core.threads import run_in_thread
from holdfast.execution.runner import Result
from holdfast.mcp.content import blocks_of, text_of
from holdfast.skills.function_tools import Function, tool_of
from holdfast.skills.run import Run
from holdfast.skills.service import service_of
from holdfast.skills.tool import Tool


class FunctionRunner:
    """Runs functions: async ones on the event loop, others in one thread per call.

    A row names its function as `module:name`. The function runs if this program declares it, or if its module is within
    `modules` and it is defined there, not only imported. So the right to write rows is no right to import or call
    arbitrary code.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = modules
        self._known: dict[tuple[UUID | None, str], Function] = {}  # by the tool's id and the function's name

    def declare(self, tools: Iterable[Tool]) -> None:
        """Register the functions of these tools, so that calls of their rows find them."""
        self._known |= {(tool.id, tool.reference): tool.function for tool in tools if tool.function is not None}

    def imports(self, reference: str) -> bool:
        """Whether a row's function may be imported."""
        module, _, name = reference.partition(":")
        return bool(name) and self._is_named(module)

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Call the function."""
        function = tool.function or self._known.get((tool.id, tool.reference)) or await self._import_function(tool)
        value = await function.run(run, arguments, name=f"holdfast tool {tool.name}")
        blocks = blocks_of(value)
        return Result(value) if blocks is None else Result(text_of(blocks), content=blocks)

    async def _import_function(self, tool: Tool) -> Function:
        module, _, name = tool.reference.partition(":")
        if not self.imports(tool.reference):
            raise Unavailable(
                f"this process does not have the function {tool.reference or tool.name}",
                why="it does not run the app that declares it",
                next="Serve the app with `holdfast up APP`, or add its module to execution.functions.",
            )
        found: Any = await run_in_thread(lambda: _import_object(module, name), name=f"holdfast import {module}")
        home = getattr(found, "__module__", None)
        function = _function_of(found, tool) if isinstance(home, str) and self._is_named(home) else None
        if function is None:
            why = (
                f"it is defined in {home}, which execution.functions does not allow" if home else "it is not a function"
            )
            raise Unavailable(f"the function {tool.reference} may not be called", why=why)
        self._known[tool.id, tool.reference] = function
        return function

    def _is_named(self, module: str) -> bool:
        return any(module == each or module.startswith(f"{each}.") for each in self._modules)


def _function_of(found: Any, tool: Tool) -> Function | None:
    if tool.service is not None:
        return service_of(found, tool.service, tool.parameters, name=tool.name).function
    try:
        return tool_of(found, name=tool.name, schema=tool.parameters).function
    except InvalidInput:  # the row describes another version of the function: use the function's signature
        return tool_of(found, name=tool.name).function


def _import_object(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"the function {module}:{name} does not exist", why=str(error)) from error
    return found
