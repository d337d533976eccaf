"""The smallest use of every part of the engine, with whatever versions this Python has.

    python smoke.py EXTRA

`floors.py` runs it in environments with the lowest versions, which have no test framework: plain assertions do.
"""

import asyncio
import importlib
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

import holdfast
from holdfast import App
from holdfast.core.config import Config, load_config
from holdfast.engine import Engine, open_engine
from holdfast.llm.tokens import counter_for
from holdfast.memory import Owner
from holdfast.postgres import binaries
from holdfast.server.port import bind
from holdfast.server.serving import serve
from holdfast.skills.sources.source import Choice

OWN_MODULES = {
    "adk": "holdfast.adapters.adk",
    "langchain": "holdfast.adapters.langchain",
    "kafka": "holdfast.bus.kafka",
}
CLI = "from holdfast.cli.main import main; main()"
PATIENCE = 120  # seconds: a busy machine is no failure


def import_everything(extra: str) -> None:
    """Import every module, but those of other extras."""
    others = tuple(module for name, module in OWN_MODULES.items() if name != extra)
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not module.name.startswith(others):
            importlib.import_module(module.name)


def ask_for_help() -> None:
    """Have the command line say what it can."""
    shown = subprocess.run([sys.executable, "-c", CLI, "up", "--help"], capture_output=True, text=True)
    assert "Start everything in one process" in shown.stdout, shown


async def use_engine(engine: Engine) -> None:
    """Append to a conversation, remember and search."""
    talk = await engine.conversations.create(user="ann", session_id="s1")
    node = await engine.conversations.append(talk.id, "hello", context="text:user:ann")
    assert [each.id for each in await engine.conversations.last(talk.id, 1)] == [node.id]
    await engine.memory.remember(Owner("user", "ann"), "prefers tea over coffee")
    (hit,) = await engine.memory.search(Owner("user", "ann"), "tea")
    assert hit.memory.content == "prefers tea over coffee"
    schema = b"type Query { order(id: ID!): Order } type Order { id: ID! }"
    shop = "https://shop.example/graphql"
    report = await engine.sources.add("shop", document=schema, base_url=shop, choice=Choice(everything=True))
    assert report.added == ("order",)


async def use_server(engine: Engine, config: Config) -> None:
    """Ask by HTTP, by WebSocket and by MCP."""
    own = engine.tenant(await engine.tenants.id_of("default"))
    app = App()

    @app.tool
    async def track(parcel: str) -> str:
        """Where a parcel is."""
        return f"{parcel} is in Cologne"

    app.agent("default", tools=[track], memory=False)
    async with own.serving(app), _server(engine, config, app) as url, aiohttp.ClientSession() as client:
        async with client.get(f"{url}/readyz") as reply:
            assert (await reply.json())["state"] != "down"
        async with client.post(f"{url}/api/chat", json={"message": "hello"}) as reply:
            assert (await reply.json())["state"] == "done"
        async with client.ws_connect(f"{url}/ws/default") as socket:
            await socket.send_str("hello")
            assert await socket.receive_str(timeout=PATIENCE)
        client_info = {"name": "smoke", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info}
        called = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        accepts = {"accept": "application/json, text/event-stream"}
        async with client.post(f"{url}/mcp", json=called, headers=accepts) as reply:
            assert "serverInfo" in await reply.text()


@asynccontextmanager
async def _server(engine: Engine, config: Config, app: App) -> AsyncGenerator[str]:
    listener = bind(config)
    ready: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve(engine, listener, config, ready.set_result, app=app))
    await asyncio.wait([server, ready], return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        await server
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.cancel()
    with suppress(asyncio.CancelledError):
        await server


async def use_adk(config: Config) -> None:
    """Keep a session of ADK's."""
    from google.adk.events.event import Event
    from google.genai import types

    from holdfast.adapters.adk import PostgresSessionService

    async with open_engine(config=config) as engine:
        service = PostgresSessionService(engine)
        session = await service.create_session(app_name="shop", user_id="ann", state={"a": 1})
        said = types.Content(role="user", parts=[types.Part(text="hello")])
        await service.append_event(session, Event(author="user", content=said))
        found = await service.get_session(app_name="shop", user_id="ann", session_id=session.id)
        assert found is not None
        assert len(found.events) == 1


async def use_langchain(config: Config) -> None:
    """Keep messages of LangChain's."""
    from langchain_core.messages import HumanMessage

    from holdfast.adapters.langchain import HoldfastChatMessageHistory

    async with open_engine(config=config) as engine:
        history = HoldfastChatMessageHistory("s2", engine)
        await history.aadd_messages([HumanMessage("hello")])
        assert [message.content for message in await history.aget_messages()] == ["hello"]


async def use_kafka(config: Config) -> None:
    """Publish a record to the broker that its library has for tests; the real one is for the tests that have it."""
    from confluent_kafka import Producer

    producer = Producer({"test.mock.num.brokers": 1})
    producer.produce("topic", b"hello")
    assert producer.flush(PATIENCE) == 0


async def use_tokens(config: Config) -> None:
    """Count tokens with OpenAI's vocabulary."""
    counter = counter_for("openai:gpt-4o", config.llm)
    assert counter.name == "o200k_base"
    assert counter.count("hello world") == 2


async def use_fallback(config: Config) -> None:
    """Use the engine on the PostgreSQL that stands in for ours."""
    binaries.WHEELS = binaries.WHEELS[1:]
    async with open_engine(config=config) as engine:
        await use_engine(engine)


USES: dict[str, Callable[[Config], Awaitable[None]]] = {
    "adk": use_adk,
    "langchain": use_langchain,
    "kafka": use_kafka,
    "tokens": use_tokens,
    "fallback-postgres": use_fallback,
}


async def main(extra: str) -> None:
    """Use the engine, or one of its extras."""
    import_everything(extra)
    ask_for_help()
    with tempfile.TemporaryDirectory(prefix="holdfast-floor-") as folder:
        flags = {"data": Path(folder) / "data", "memory.embedding.fetch": False, "server.port": 0}
        config = load_config(flags, environ={}, cwd=Path(folder))
        if extra in USES:
            await USES[extra](config)
            return
        async with open_engine(config=config) as engine:
            await use_engine(engine)
            await use_server(engine, config)


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1]), PATIENCE))
