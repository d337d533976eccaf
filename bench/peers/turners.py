"""Agents that do turns, ours and others': each asks a model of no latency, uses a tool, asks again and answers.

All are set up as their users set them up, on a database of their own; what they say is the same.
"""

import importlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast import App
from holdfast.core.config import load_config
from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings import Embeddings, Vector
from holdfast.engine import open_engine
from peers import APP, CONNECTIONS, sqlalchemy_url

AGENT = "support"
INSTRUCTIONS = "You help the customers of a shop with their parcels. Be short and exact."
PARCEL = "AB-1"
THOUGHT = "Let me look where it is."
ANSWER = "It is in Cologne, and will be with you tomorrow before noon."
RECALLED = 10  # memories, at most
USED = (200, 20)  # tokens in and out that a model says an answer took; ours would count them otherwise

OURS = "Holdfast, memory by words"
OURS_BARE = "Holdfast, no memory"
OURS_MODEL = "Holdfast, memory by meaning"
LANGGRAPH = "LangGraph, no memory"
LANGGRAPH_STORE = "LangGraph, its store without vectors"
LANGGRAPH_MODEL = "LangGraph, its store by meaning"
ADK = "ADK, no memory"

# Says something to an agent for a user, in a session, and gives back the answer.
Ask = Callable[[str, str, str], Awaitable[str]]
Opens = Callable[[str, Path], AbstractAsyncContextManager[Ask]]


def message(number: int) -> str:
    """What a user says: something to look up, and something to keep in mind."""
    return (
        f"Where is my parcel {PARCEL}? I moved to house {number} in the Lindenallee, and my dog is called Rex {number}."
    )


async def track(parcel: str) -> dict[str, str]:
    """Where a parcel is, and when it comes."""
    return {"parcel": parcel, "place": "Cologne", "arrives": "tomorrow"}


@asynccontextmanager
async def ours(url: str, folder: Path, *, memory: bool = True, embedding: bool = False) -> AsyncGenerator[Ask]:
    """Our engine; without an embedding model, memory goes by words."""
    script = folder / "script.jsonl"
    used = {"usage": dict(zip(("input_tokens", "output_tokens"), USED, strict=True))}
    asks = {"text": THOUGHT, "calls": [{"name": "track", "arguments": {"parcel": PARCEL}}], **used}
    script.write_text("\n".join(map(json.dumps, ({"by": "step"}, asks, {"text": ANSWER, **used}))))
    without = {"memory.embedding.model": "none", "memory.embedding.chinese_model": "", "memory.embedding.fetch": False}
    config = load_config({
        "data": folder,
        "database.url": url,
        "database.pool_size": CONNECTIONS,
        "llm.model": f"scripted:{script}",
        "memory.embedding.cached_queries": 0,  # a question that was asked before costs as much as the first
        **({} if embedding else without),
    })  # fmt: skip
    app = App()
    app.agent(AGENT, instructions=INSTRUCTIONS, tools=[app.tool(idempotent=True)(track)], memory=memory)

    async with open_engine(config=config) as engine, engine.serving(app):

        async def ask(user: str, session: str, text: str) -> str:
            answer = ""
            async for event in engine.agents.run(AGENT, user=user, session_id=session, message=text):
                assert event.kind != "error", event
                if event.kind == "answer":
                    answer = event.text
            return answer

        yield ask


@asynccontextmanager
async def langgraph(url: str, folder: Path, *, store: bool = False, embedding: bool = False) -> AsyncGenerator[Ask]:
    """LangChain's agent on LangGraph with its Postgres saver, and with its store: a search before, what was said after.

    The search is made once and around the graph: within it, it would cost another checkpoint.
    """
    pool: Any = part("psycopg_pool", "AsyncConnectionPool")
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": part("psycopg.rows", "dict_row")}
    async with AsyncExitStack() as stack:
        connections = pool(url, min_size=4, max_size=CONNECTIONS, open=False, kwargs=options)
        await stack.enter_async_context(connections)
        saver = part("langgraph.checkpoint.postgres.aio", "AsyncPostgresSaver")(connections)
        await saver.setup()
        memories: Any = None
        if store:
            embed = await stack.enter_async_context(embedder()) if embedding else None
            index = {"dims": EmbeddingSettings().dimensions, "embed": embed, "fields": ["text"]} if embed else None
            memories = part("langgraph.store.postgres", "AsyncPostgresStore")(connections, index=index)
            await memories.setup()

        @part("langchain.agents.middleware", "dynamic_prompt")
        def prompt(request: Any) -> str:
            return "\n".join([INSTRUCTIONS, *request.runtime.context["recalled"]])

        agent = part("langchain.agents", "create_agent")(
            chat_model(),
            [track],
            context_schema=dict,
            checkpointer=saver,
            **({"middleware": [prompt]} if store else {"system_prompt": INSTRUCTIONS}),
        )

        async def ask(user: str, session: str, text: str) -> str:
            found: list[str] = []
            if store:
                hits = await memories.asearch((user,), query=text if embedding else None, limit=RECALLED)
                found = [hit.value["text"] for hit in hits]
            done = await agent.ainvoke(
                {"messages": [{"role": "user", "content": text}]},
                {"configurable": {"thread_id": session}},
                context={"recalled": found},
            )
            answer: str = done["messages"][-1].content
            if store:
                said = [
                    part("langgraph.store.base", "PutOp")((user,), str(uuid4()), {"text": t}) for t in (text, answer)
                ]
                await memories.abatch(said)
            return answer

        yield ask


def chat_model() -> Any:
    """A chat model of LangChain that says what ours says."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, ToolCall
    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
            return self

        def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            used = UsageMetadata(input_tokens=USED[0], output_tokens=USED[1], total_tokens=sum(USED))
            said = AIMessage(ANSWER, usage_metadata=used)
            if messages[-1].type == "human":
                call = ToolCall(name="track", args={"parcel": PARCEL}, id=f"call_{len(messages)}", type="tool_call")
                said = AIMessage(THOUGHT, tool_calls=[call], usage_metadata=used)
            return ChatResult(generations=[ChatGeneration(message=said)])

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            return self._generate(messages)  # as it comes, it would run in a thread

    return Scripted()


@asynccontextmanager
async def embedder() -> AsyncGenerator[Any]:
    """Our embedding model, as LangChain takes one."""
    from langchain_core.embeddings import Embeddings as Embedder

    async with Embeddings(EmbeddingSettings(cached_queries=0)) as model:

        class Ours(Embedder):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                raise NotImplementedError

            def embed_query(self, text: str) -> list[float]:
                raise NotImplementedError

            async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
                return [_known(vector) for vector in await model.vectors(texts)]

            async def aembed_query(self, text: str) -> list[float]:
                return _known(await model.query(text, model.model("en") or ""))

        yield Ours()


@asynccontextmanager
async def adk(url: str, folder: Path) -> AsyncGenerator[Ask]:
    """ADK's runner on its own database service."""
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part

    used = GenerateContentResponseUsageMetadata(prompt_token_count=USED[0], candidates_token_count=USED[1])

    class Scripted(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            last = llm_request.contents[-1].parts or []
            parts = [Part(text=ANSWER)]
            if not any(part.function_response for part in last):
                parts = [Part(text=THOUGHT), Part(function_call=FunctionCall(name="track", args={"parcel": PARCEL}))]
            yield LlmResponse(content=Content(role="model", parts=parts), usage_metadata=used)

    agent = LlmAgent(name=AGENT, model=Scripted(model="scripted"), instruction=INSTRUCTIONS, tools=[track])
    async with DatabaseSessionService(sqlalchemy_url(url), pool_size=CONNECTIONS, max_overflow=0) as sessions:
        runner = Runner(app_name=APP, agent=agent, session_service=sessions, auto_create_session=True)

        async def ask(user: str, session: str, text: str) -> str:
            answer = ""
            said = Content(role="user", parts=[Part(text=text)])
            async for event in runner.run_async(user_id=user, session_id=session, new_message=said):
                if event.is_final_response() and event.content and event.content.parts:
                    answer = event.content.parts[0].text or ""
            return answer

        yield ask


def part(module: str, name: str) -> Any:
    """What a peer's module calls by this name."""
    return getattr(importlib.import_module(module), name)


def is_installed(way: str) -> bool:
    """Whether what a way needs is here."""
    needs = ("langchain", "langgraph") if way.startswith("LangGraph") else ("google.adk",) if way == ADK else ()
    return all(find_spec(need) is not None for need in needs)


def _known(vector: Vector | None) -> list[float]:
    assert vector is not None, "there is no embedding model here"
    return vector


WAYS: dict[str, Opens] = {
    OURS: ours,
    OURS_BARE: partial(ours, memory=False),
    OURS_MODEL: partial(ours, embedding=True),
    LANGGRAPH: langgraph,
    LANGGRAPH_STORE: partial(langgraph, store=True),
    LANGGRAPH_MODEL: partial(langgraph, store=True, embedding=True),
    ADK: adk,
}
