"""The task of bench/skills.py by LangChain's agent with all tools bound, and by langgraph-bigtool, which finds them."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from parts.disclosing import ANSWER, INSTRUCTIONS, QUESTION, REFERENCE, TOOL, Done, everything
from parts.shelves import Shelf

from holdfast.core.text import render
from holdfast.llm.tokens import ESTIMATE
from peers.turners import part

LANGCHAIN = "LangChain, 500 tools bound"
BIGTOOL = "langgraph-bigtool, tools found first"
NEEDS = {LANGCHAIN: ("langchain", "langgraph"), BIGTOOL: ("langgraph_bigtool",)}
DIMENSIONS = 384

Task = Callable[[], Awaitable[Done]]


def is_installed(way: str) -> bool:
    """Whether what a way needs is here."""
    return all(find_spec(need) is not None for need in NEEDS[way])


class Sent:
    """What was sent to a model since it was asked last."""

    def __init__(self) -> None:
        self._tokens: list[int] = []

    def add(self, messages: Sequence[Any], tools: Sequence[Any]) -> None:
        """Count a request, as ours are counted."""
        texts = [str(message.content) for message in messages]
        calls = [render(call).decode() for message in messages for call in getattr(message, "tool_calls", ())]
        told = [render(tool["function"]).decode() for tool in tools]
        self._tokens.append(sum(map(ESTIMATE.count, [*texts, *calls, *told])))

    def done(self) -> Done:
        """All of it, and begin anew."""
        tokens, self._tokens = self._tokens, []
        return Done(tokens[0], sum(tokens), ESTIMATE.name)


def langchain_task(stored: Sequence[Shelf]) -> Task:
    """LangChain's agent, as it comes: every tool is bound, and the instructions have everything."""
    sent = Sent()
    tools = [function for shelf in stored for function in shelf.functions]
    model = chat_model(sent, [(TOOL, {"reference": REFERENCE})])
    agent = part("langchain.agents", "create_agent")(model, tools, system_prompt=everything(stored))

    async def do() -> Done:
        done = await agent.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})
        assert done["messages"][-1].content == ANSWER
        return sent.done()

    return do


async def bigtool_task(stored: Sequence[Shelf]) -> Task:
    """langgraph-bigtool on LangGraph's store in memory: at first there is one tool, which finds others.

    Its task ends when it has found the tool: how it calls one, LangGraph 1 no longer knows.
    """
    sent = Sent()
    store = await filled_store({
        function.__name__: function.__doc__ or "" for shelf in stored for function in shelf.functions
    })  # fmt: skip
    registry = {function.__name__: _structured(function) for shelf in stored for function in shelf.functions}
    model = chat_model(sent, [("retrieve_tools", {"query": TOOL})])
    build = part("langgraph_bigtool", "create_agent")(model, registry, limit=10)
    agent = build.compile(store=store)

    async def do() -> Done:
        said = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
        done = await agent.ainvoke({"messages": said})
        assert done["messages"][-1].content == ANSWER
        return sent.done()

    return do


async def filled_store(texts: Mapping[str, str]) -> Any:
    """LangGraph's store in memory, with a vector for each text."""
    index = {"embed": _embed, "dims": DIMENSIONS, "fields": ["description"]}
    store = part("langgraph.store.memory", "InMemoryStore")(index=index)
    for name, text in texts.items():
        await store.aput(("tools",), name, {"description": f"{name}: {text}"})
    return store


def chat_model(sent: Sent, calls: Sequence[tuple[str, dict[str, Any]]]) -> Any:
    """A chat model that makes these calls, one after the other, and then answers; tools are told it as OpenAI's are."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, ToolCall
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.utils.function_calling import convert_to_openai_tool

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
            return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

        def _generate(self, messages: list[BaseMessage], *_: Any, **given: Any) -> ChatResult:
            sent.add(messages, given.get("tools", ()))
            step = sum(1 for message in messages if message.type == "ai")
            said = AIMessage(ANSWER)
            if step < len(calls):
                name, arguments = calls[step]
                said = AIMessage(
                    "", tool_calls=[ToolCall(name=name, args=arguments, id=f"call_{step}", type="tool_call")]
                )
            return ChatResult(generations=[ChatGeneration(message=said)])

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **given: Any) -> ChatResult:
            return self._generate(messages, **given)  # as it comes, it would run in a thread

    return Scripted()


def _structured(function: Any) -> Any:
    return part("langchain_core.tools", "StructuredTool").from_function(coroutine=function)


def _embed(texts: Sequence[str]) -> list[list[float]]:
    """Vectors that cost nothing: a text that begins with a name is nearest to that name."""
    return [_vector(text.partition(":")[0]) for text in texts]


def _vector(name: str) -> list[float]:
    digest = hashlib.shake_128(name.encode()).digest(DIMENSIONS)
    return [byte / 127.5 - 1 for byte in digest]
