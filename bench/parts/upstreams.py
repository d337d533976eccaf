"""MCP servers behind gateways, which count the requests that come to them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from measure.helpers import Helper, helper

from parts.fronts import SDK_SERVER, is_installed, legacy_call, peer_process, tool_call
from parts.loading import Ask, Front, Tree, port_of, requests_of

MODERN, LEGACY, SDK = "cheap, all versions", "cheap, legacy only", SDK_SERVER
SESSION = "bench"  # of the cheap server: it has one


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server, as a front of its own; `requests` tells how many have come."""

    name: str
    front: Front
    requests: Callable[[], Awaitable[int]]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.front.port}/mcp"

    def direct(self) -> Ask:
        """The call of its tool without a gateway."""
        return self.behind(legacy_call(self.front, SESSION) if self.name == LEGACY else tool_call(self.front))

    def behind(self, ask: Ask) -> Ask:
        """A request to a gateway in front of it, with which its own requests are counted."""
        return replace(ask, upstream=self.requests)


def can_run(name: str) -> bool:
    """Whether what it needs is installed."""
    return name != SDK or is_installed(SDK)


@asynccontextmanager
async def upstream(name: str, folder: Path) -> AsyncGenerator[Upstream]:
    """The server of this name."""
    async with _process(name, folder) as process:
        port, _ = await port_of(process)
        yield Upstream(name, Front(port, Tree(process.pid)), lambda: requests_of(process))


def _process(name: str, folder: Path) -> AbstractAsyncContextManager[Helper]:
    if name != SDK:
        return helper("mcp_shop", "legacy" if name == LEGACY else "all")
    nothing = folder / "nothing.json"
    nothing.write_text("{}")
    return peer_process(SDK, nothing)
