"""Clients: who called a tool, where they can be told how it goes, or asked for something.

A tool reaches its caller by its run:

    @app.tool
    async def refund(order: str, run: holdfast.Run) -> str:
        await run.client.progress(1, total=2, message="looking it up")
        sure = await run.client.elicit("sure", "Give the money back?", {"type": "object", "properties": {}})
        return "paid back" if sure.action == "accept" else "left as it is"

Whoever asks may be run anew from its beginning when the answer has come, in another process even: what was answered
before is then answered at once, by the name it was asked under. So nothing that takes effect may come before it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holdfast.core.errors import Unavailable
from holdfast.mcp.inputs import Elicit, InputRequest, ListRoots, Reply, Sample


class InputRequired(BaseException):
    """A tool has to wait for its client: it is run anew when what it asks for has come. No tool's affair to catch."""

    def __init__(self, requests: Mapping[str, InputRequest]) -> None:
        super().__init__(", ".join(requests))
        self.requests = requests


class Client(Protocol):
    """Whoever called a tool."""

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Tell how far it is, if they want to know."""
        ...

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Tell what happens, if they want to know; the level is one of `debug` to `emergency`."""
        ...

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Ask several things at once, each under a name of its own; Unavailable where nobody can be asked."""
        ...

    async def detach(self) -> None:
        """Let them go, and come back later for what follows, where they can: a long call need not keep a connection."""

    async def elicit(self, name: str, message: str, schema: Mapping[str, Any]) -> Reply:
        """Ask the person in front of the client to fill in a form."""
        return (await self.inputs({name: Elicit(message, schema)}))[name]

    async def sample(
        self,
        name: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
    ) -> Reply:
        """Have the client's model say something."""
        return (await self.inputs({name: Sample(messages, max_tokens, system_prompt)}))[name]

    async def roots(self, name: str = "roots") -> Reply:
        """Ask which folders the client works in."""
        return (await self.inputs({name: ListRoots()}))[name]


class Silent(Client):
    """Nobody who could be told or asked: an agent's turn, a plain call over HTTP."""

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Nobody wants to know."""

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Nobody wants to know."""

    async def inputs(self, requests: Mapping[str, InputRequest]) -> Mapping[str, Reply]:
        """Nobody can be asked."""
        raise Unavailable(
            "nobody can be asked here",
            why="the tool was called by something that takes no questions",
            next="Call it over MCP, by a client that can be asked.",
        )


SILENT = Silent()
