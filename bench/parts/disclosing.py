"""The same task by two agents of ours: one is told of its skills step by step, the other of everything at once."""

import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast import App
from holdfast.core.config import load_config
from holdfast.engine import Engine, open_engine
from parts.shelves import Shelf, shelves

STEP_BY_STEP, AT_ONCE = "step-by-step", "at-once"
INSTRUCTIONS = "You help the customers of a shop. Be short and exact."
QUESTION = "What has become of my parcel AB-1?"
SKILL, TOOL, REFERENCE = "european-parcels", "find_european_parcels", "AB-1"
ANSWER = "It is ready, and will be with you tomorrow."

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Done:
    """What doing the task took: tokens of the first prompt, and of all that were sent."""

    first: int
    all: int
    counter: str


@asynccontextmanager
async def our_shop(folder: Path) -> AsyncGenerator[Engine]:
    """Our engine, with both agents served."""
    use = {"text": "", "calls": [{"name": "use_skill", "arguments": {"name": SKILL}}]}
    call = {"text": "", "calls": [{"name": TOOL, "arguments": {"reference": REFERENCE}}]}
    config = load_config({
        "data": folder / "data",
        "llm.context_tokens": 400_000,
        "agents.max_tokens": 10_000_000,
        "memory.embedding.model": "none",
        "memory.embedding.chinese_model": "",
        "memory.embedding.fetch": False,
    })  # fmt: skip
    stored = shelves()
    app = App("shop")
    for shelf in stored:
        functions = [app.tool(idempotent=True, access="read")(function) for function in shelf.functions]
        app.add_skill(shelf.name, description=shelf.description, instructions=shelf.instructions, tools=functions)
    app.agent(
        STEP_BY_STEP,
        instructions=INSTRUCTIONS,
        skills=[shelf.name for shelf in stored],
        memory=False,
        model=_script(folder, use, call),
    )
    app.agent(
        AT_ONCE,
        instructions=everything(stored),
        tools=[function for shelf in stored for function in shelf.functions],
        memory=False,
        model=_script(folder, call),
    )
    async with open_engine(config=config) as engine, engine.serving(app):
        yield engine


def everything(stored: Sequence[Shelf]) -> str:
    """The instructions of an agent that is told everything at once."""
    return "\n\n".join([INSTRUCTIONS, *(shelf.instructions for shelf in stored)])


async def do_task(engine: Engine, agent: str) -> Done:
    """Have an agent do the task, in a new conversation."""
    run_id, answer = None, ""
    async for event in engine.agents.run(agent, user="ann", session_id=f"task-{next(_numbers)}", message=QUESTION):
        assert event.kind != "error", event
        run_id = event.run_id or run_id
        answer = event.text if event.kind == "answer" else answer
    assert answer == ANSWER, answer
    assert run_id is not None
    sent = [step.sent for step in await engine.agents.steps(run_id)]
    return Done(sent[0]["tokens"], sum(each["tokens"] for each in sent), sent[0]["counter"])


def _script(folder: Path, *steps: object) -> str:
    path = folder / f"script-{next(_numbers)}.jsonl"
    path.write_text("\n".join(map(json.dumps, ({"by": "step"}, *steps, {"text": ANSWER}))))
    return f"scripted:{path}"
