"""Clients of tool calls: a tool can report progress to its client, and ask it for input.

A tool reaches its client through its run:

    @app.tool
    async def refund(order: str, run: holdfast.Run) -> str:
        await run.client.progress(1, total=2, message="looking it up")
        sure = await run.client.elicit("sure", "Give the money back?", {"type": "object", "properties": {}})
        return "paid back" if sure.action == "accept" else "left as it is"

A tool that asks for input may run again from the beginning when the answer arrives, even in another process. An earlier
answer is then returned at once, by the name of its request. So a tool must not have side effects before it asks.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from holdfast.core.errors import Unavailable
from holdfast.mcp.inputs import Elicit, InputRequest, ListRoots, Reply, Sample


class InputRequired(BaseException):
    """Stops a tool until its client has answered; then the tool runs again. Tools must not catch it."""

    def __init__(self, requests: Mapping[str, InputRequest]) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests


class Client(Protocol):
    """The client that called a tool.

    `capabilities`: what it has declared that it can be asked for, as MCP names them. `is_modern`: it carries the state
    of a call that waits for its answers itself. `waiting` identifies a call of another server that waits for this
    client; it is the same when the client comes back with its answers. `wants_progress`: it takes progress reports.
    `level` is the lowest level of logs that it takes, None: no logs.
    """

    capabilities: Mapping[str, Any] = MappingProxyType({})
    is_modern: bool = True
    waiting: str = ""
    wants_progress: bool = False
    level: str | None = None

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client wants it."""
        ...

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Send a log message, if the client wants it. The level is one of `debug` to `emergency`."""
        ...

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Send several input requests at once, by name. Raise Unavailable if the client cannot be asked."""
        ...

    async def detach(self) -> None:
        """Let the client disconnect and fetch the rest later, if it can. A long call needs no open connection."""

    async def elicit(self, name: str, message: str, schema: Mapping[str, Any]) -> Reply:
        """Ask the client's user to fill in a form."""
        return (await self.inputs({name: Elicit(message, schema)}))[name]

    async def sample(
        self,
        name: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
    ) -> Reply:
        """Ask the client's model for a completion."""
        return (await self.inputs({name: Sample(messages, max_tokens, system_prompt)}))[name]

    async def roots(self, name: str = "roots") -> Reply:
        """Ask which folders the client works in."""
        return (await self.inputs({name: ListRoots()}))[name]


class NoClient(Client):
    """A client that takes no messages and no questions: an agent's turn, or a plain HTTP call."""

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Do nothing."""

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Do nothing."""

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Raise Unavailable."""
        raise Unavailable(
            "the caller cannot be asked for input",
            why="this caller does not support questions from tools",
            next="Call the tool over MCP with a client that supports elicitation.",
        )


SILENT = NoClient()
