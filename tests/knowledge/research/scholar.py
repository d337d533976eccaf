"""A model that does what research asks for, by rules, and reports what it used as a test wants."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import Any

from holdfast.core.settings import LlmSettings
from holdfast.knowledge.research import prompts
from holdfast.knowledge.research.budget import most_prompt_tokens
from holdfast.llm import Caller
from holdfast.llm.model import ModelRequest, Piece
from holdfast.llm.scripted import Given, ScriptedModel
from holdfast.llm.tokens import ESTIMATE

FACT = re.compile(r"Fact \d+[^.]*\.")
PASSAGE = re.compile(r'<passage number="(\d+)"[^>]*>\n(.*?)\n</passage>', re.DOTALL)
NOTE = re.compile(r"^- .*\[[\d, ]+\]$", re.MULTILINE)

STEPS = {
    "plan": prompts.PLAN,
    "select": prompts.SELECTION,
    "read": prompts.READING,
    "combine": prompts.COMBINATION,
    "gaps": prompts.GAPS,
    "report": prompts.REPORT,
    "repair": prompts.REPAIR,
}


def step_of(request: ModelRequest) -> str:
    """Which step asks."""
    system = request.messages[0].content
    return next(name for name, prompt in STEPS.items() if system.startswith(prompt[:60].partition("{")[0]))


def read_passages(request: ModelRequest) -> list[tuple[int, str]]:
    """The passages in a request."""
    return [(int(number), text) for number, text in PASSAGE.findall(request.messages[-1].content)]


def read_notes(request: ModelRequest) -> list[str]:
    """The notes in a request."""
    content = request.messages[-1].content
    return NOTE.findall(content[content.index("<notes>") :]) if "<notes>" in content else []


def facts(request: ModelRequest) -> str:
    """Notes of the facts in the passages of a request."""
    lines = [f"- {fact} [{number}]" for number, text in read_passages(request) for fact in FACT.findall(text)]
    return "\n".join(lines) or "NONE"


def answer_by_rules(request: ModelRequest) -> str:
    """What a diligent model answers."""
    match step_of(request):
        case "plan":
            return "SEARCH: fact numbers\nSEARCH: what is known"
        case "select":
            return ", ".join(re.findall(r"^\[(\d+)\]", request.messages[-1].content, re.MULTILINE))
        case "read":
            return facts(request)
        case "gaps":
            return "ENOUGH"
        case "combine":
            return "\n".join(read_notes(request)[::2])
        case _:
            return "## Facts\n" + "\n".join(read_notes(request))


class Scholar:
    """Answers each request by `answers`, which a test can replace by step; counts requests and what they used."""

    def __init__(self) -> None:
        self.name = "scripted:scholar"
        self.requests: list[ModelRequest] = []
        self.answers: dict[str, Callable[[ModelRequest], Given]] = {}
        self.usage: Callable[[ModelRequest], tuple[int, int]] = lambda request: (100, 10)
        self.used = 0
        self.at_once = 0
        self.most_at_once = 0
        self.gate: asyncio.Event | None = None  # requests wait for it
        self.arrived = asyncio.Event()

    async def wait_for(self, requests: int) -> None:
        """Wait until so many requests have arrived."""
        while len(self.requests) < requests:
            self.arrived.clear()
            await self.arrived.wait()

    @property
    def steps(self) -> Counter[str]:
        """How many requests each step has made."""
        return Counter(map(step_of, self.requests))

    def of(self, step: str) -> list[ModelRequest]:
        """The requests of a step."""
        return [request for request in self.requests if step_of(request) == step]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Answer."""
        self.requests.append(request)
        self.arrived.set()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
            given = self.answers.get(step_of(request), answer_by_rules)(request)
            input_tokens, output_tokens = self.usage(request)
            entry: dict[str, Any] = {"text": given} if isinstance(given, str) else dict(given)  # type: ignore[arg-type]
            if "fail" not in entry:
                entry.setdefault("usage", {"input_tokens": input_tokens, "output_tokens": output_tokens})
                self.used += entry["usage"]["input_tokens"] + entry["usage"]["output_tokens"]
            async for piece in ScriptedModel([entry], name=self.name).stream(request):
                yield piece
        finally:
            self.at_once -= 1


def most_of(request: ModelRequest) -> tuple[int, int]:
    """The most that a request can use."""
    return most_prompt_tokens(request, ESTIMATE), request.max_tokens or 0


def caller_of(model: Scholar) -> Callable[..., Caller]:
    """What the engine makes its caller with, so that this model is asked."""

    def make(settings: LlmSettings, **options: Any) -> Caller:
        return Caller(settings, models=[model], **options)

    return make
