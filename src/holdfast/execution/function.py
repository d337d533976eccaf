"""Functions of this program, run in its own process."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.core.threads import in_thread
from holdfast.execution.runner import Result
from holdfast.skills.function import Function, tool_of
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool


class FunctionRunner:
    """Runs functions: async ones on the event loop, plain ones each in a thread.

    A row names its function as `module:name`. It is run where this program declares it, or where its module is one of
    `modules`: whoever may write rows may not have everything imported.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._modules = modules
        self._known: dict[tuple[str, str], Function] = {}  # by the tool's name and the function's

    def declare(self, tools: Iterable[Tool]) -> None:
        """Have the functions of these tools be found, whoever calls them by their rows."""
        self._known |= {(tool.name, tool.reference): tool.function for tool in tools if tool.function is not None}

    async def run(self, tool: Tool, arguments: Mapping[str, Any], run: Run, *, timeout: float) -> Result:
        """Call the function."""
        function = tool.function or self._known.get((tool.name, tool.reference)) or await self._imported(tool)
        return Result(await function.run(run, arguments, name=f"holdfast tool {tool.name}"))

    async def _imported(self, tool: Tool) -> Function:
        module, _, name = tool.reference.partition(":")
        if not name or not any(module == each or module.startswith(f"{each}.") for each in self._modules):
            raise Unavailable(
                f"this process does not have the function {tool.reference or tool.name}",
                why="the program that declares it does not run here",
                next="Serve it with `holdfast up APP`, or name its module in execution.functions.",
            )
        found = self._known[tool.name, tool.reference] = await in_thread(
            lambda: _function(tool.name, module, name), name=f"holdfast import {module}"
        )
        return found


def _function(tool: str, module: str, name: str) -> Function:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"there is no function {module}:{name}", why=str(error)) from error
    function = tool_of(found, name=tool).function
    if function is None:
        raise InvalidInput(f"{module}:{name} is no function")
    return function
