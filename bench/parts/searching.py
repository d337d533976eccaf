"""Searching: in scopes of several sizes inside one large table, and what is found when little of it may be found."""

import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from measure.rounds import Server
from measure.turns import Turn, Way, again_and_again, take_turns
from peers.rememberers import TOGETHER, Rememberer

from holdfast.engine import Engine
from holdfast.memory import Memories
from parts import Case
from parts.banks import SHARES, Bank, Floats, Known
from parts.storing import Bare, Service

SCOPES = (100, 1000, 10_000)
LIMIT = 10
QUESTIONS = 60  # for each size of scope
ROUNDS = 5

SEARCH = "memory.search"
SQL = "its SQL alone"
WHOLE = "memory.search, with the model"
EXACT = "bare exact vectors"
MEANING = "memory.search, by meaning alone"
INDEXED = "HNSW over all, iterative scan"
POOLED = "memory.search against itself without the pool"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a bank."""

    bank: Bank
    text: str
    vector: Floats


@dataclass(frozen=True, slots=True)
class Searcher:
    """A peer, and how it is asked."""

    rememberer: Rememberer
    largest: int  # scope
    stores: bool  # what it is asked about is not there yet
    by_vectors: bool  # alone: so exact vectors say how much it finds

    async def store(self, bank: Bank) -> None:
        """Let it remember a bank."""
        texts = [draft["content"] for draft in bank.drafts()]
        await self.rememberer.learn(texts, bank.vectors)
        names = list(map(str, range(bank.size)))
        parts = range(0, bank.size, TOGETHER)
        owner = bank.owner.name
        await self.rememberer.store([(owner, texts[n : n + TOGETHER], names[n : n + TOGETHER]) for n in parts])


def asked_of(banks: Sequence[Bank], count: int = QUESTIONS) -> list[Asked]:
    """So many questions in turn to these banks."""
    each = -(-count // len(banks))
    lists = [[Asked(bank, text, vector) for text, vector in bank.questions(each)] for bank in banks]
    return [asked for some in zip(*lists, strict=True) for asked in some][:count]


def scopes_of(banks: Sequence[Bank]) -> list[int]:
    """The sizes of scopes that are measured and are there."""
    return [scope for scope in SCOPES if any(bank.size == scope for bank in banks)]


def cycling(call: Callable[[Any], Awaitable[object]], over: Sequence[object]) -> Way:
    """One after the other, again and again."""
    cycle = itertools.cycle(over)
    return Way(again_and_again(lambda: call(next(cycle))))


async def searching(
    engine: Engine,
    tapped: Service,
    known: Known,
    bare: Bare,
    raw: tuple[Any, UUID],
    banks: Sequence[Bank],
    *,
    peers: Mapping[str, Searcher],
    seconds: float,
    server: Server,
) -> tuple[dict[Case, dict[str, list[Turn]]], dict[Case, dict[str, float | None]]]:
    """What a search costs, by the size of the scope, and how much of the nearest others find."""
    connection, tenant = raw
    found: dict[Case, dict[str, list[Turn]]] = {}
    recalls: dict[Case, dict[str, float | None]] = {}
    scopes = scopes_of(banks)
    for scope in scopes:
        questions = asked_of([bank for bank in banks if bank.size == scope][:20])
        known.learn([asked.text for asked in questions], np.stack([asked.vector for asked in questions]))
        sent: list[tuple[str, tuple[object, ...]]] = []
        for asked in questions:
            await tapped.memories.search(asked.bank.owner, asked.text, limit=LIMIT)
            sent += tapped.sent

        def search(asked: Asked) -> Awaitable[object]:
            return tapped.memories.search(asked.bank.owner, asked.text, limit=LIMIT)

        def whole(asked: Asked) -> Awaitable[object]:
            return engine.memory.search(asked.bank.owner, asked.text, limit=LIMIT)

        def statement(sent: tuple[str, tuple[object, ...]]) -> Awaitable[object]:
            return connection.fetch(sent[0], tenant, *sent[1])

        def exact(asked: Asked) -> Awaitable[object]:
            return bare.exact(asked.bank.number, asked.vector.tolist())

        ways = {
            SEARCH: cycling(search, questions),
            SQL: cycling(statement, sent),
            EXACT: cycling(exact, questions),
            WHOLE: cycling(whole, questions),
        }
        case = Case("search", f"scope of {scope:,}")
        recalls[case] = {}
        for name, peer in peers.items():
            if scope <= peer.largest:
                ways[name], recalls[case][name] = await _peer_way(peer, questions)
        found[case] = await take_turns(ways, rounds=ROUNDS, seconds=seconds / len(scopes), server=server)
    return found, recalls


async def _peer_way(peer: Searcher, questions: Sequence[Asked]) -> tuple[Way, float | None]:
    if peer.stores:  # it is slow to store: one bank of each size has to do
        questions = [asked for asked in questions if asked.bank is questions[0].bank]
        await peer.store(questions[0].bank)
    await peer.rememberer.learn([asked.text for asked in questions], np.stack([asked.vector for asked in questions]))
    texts = [(asked.bank.owner.name, asked.text) for asked in questions]
    found: float | None = None
    if peer.by_vectors:
        answers = await peer.rememberer.answers(texts, limit=LIMIT)
        recalls = [recall(asked, list(map(int, ids)), None) for asked, ids in zip(questions, answers, strict=True)]
        found = float(np.mean(recalls))
    return await peer.rememberer.searching(texts, limit=LIMIT), found


@dataclass(frozen=True, slots=True)
class Filtered:
    """How much of the exact answer a way found, and how long each search took."""

    recall: float
    times: Sequence[float]


async def filtering(
    memories: Memories, known: Known, bare: Bare, banks: Sequence[Bank], *, rows: int
) -> dict[Case, dict[str, Filtered]]:
    """What is found where the owner holds a share of the table, and a filter lets through a share of the owner's."""
    found: dict[Case, dict[str, Filtered]] = {}
    sizes = sorted({bank.size for bank in banks})
    largest = next(bank for bank in banks if bank.size == sizes[-1])
    for size in sizes:
        some = [bank for bank in banks if bank.size == size][:10]
        case = Case("owner's rows alone", f"{100 * size / rows:.3g} % of the table")
        found[case] = await _both(memories, known, bare, asked_of(some, 40), None)
    for share in SHARES:
        case = Case("filter on metadata", f"{share:g} % of {largest.size:,}")
        found[case] = await _both(memories, known, bare, asked_of([largest], 40), share)
    return found


async def _both(
    memories: Memories, known: Known, bare: Bare, questions: Sequence[Asked], share: float | None
) -> dict[str, Filtered]:
    known.learn([asked.text for asked in questions], np.stack([asked.vector for asked in questions]))
    name = None if share is None else f"{share:g}"

    async def ours(asked: Asked) -> list[int]:
        where = None if name is None else {"in": [name]}
        hits = await memories.search(asked.bank.owner, asked.text, limit=LIMIT, where=where)
        return [hit.memory.metadata["place"] for hit in hits]

    def indexed(asked: Asked) -> Awaitable[list[int]]:
        return bare.by_index(asked.bank.number, asked.vector.tolist(), name)

    def exact(asked: Asked) -> Awaitable[list[int]]:
        return bare.exact(asked.bank.number, asked.vector.tolist(), name)

    ways = {MEANING: ours, EXACT: exact, INDEXED: indexed}
    return {way: await _filtered(search, questions, share) for way, search in ways.items()}


async def _filtered(
    search: Callable[[Asked], Awaitable[list[int]]], questions: Sequence[Asked], share: float | None
) -> Filtered:
    times: list[float] = []
    recalls: list[float] = []
    for asked in questions:
        start = time.perf_counter()
        found = await search(asked)
        times.append(time.perf_counter() - start)
        recalls.append(recall(asked, found, share))
    return Filtered(float(np.mean(recalls)), times)


def recall(asked: Asked, found: Sequence[int], share: float | None) -> float:
    """How much of the ten nearest was found; what is as near within the precision of a half float is as good."""
    allowed = np.arange(asked.bank.size) if share is None else np.array(asked.bank.share(share))
    cosines = asked.bank.vectors @ asked.vector
    best = np.sort(cosines[allowed])[-LIMIT:]
    wanted = set(allowed.tolist())
    assert wanted.issuperset(found), "a search found what it may not find"
    return sum(cosines[place] >= best[0] - 1e-3 for place in found) / len(best)


async def pooling(pooled: Memories, whole: Memories, known: Known, banks: Sequence[Bank]) -> float:
    """How much of what all memories of a large scope would give the pool gives."""
    shares: list[float] = []
    questions = asked_of([bank for bank in banks if bank.size == scopes_of(banks)[-1]], 30)
    known.learn([asked.text for asked in questions], np.stack([asked.vector for asked in questions]))
    for asked in questions:
        few = await pooled.search(asked.bank.owner, asked.text, limit=LIMIT)
        all = await whole.search(asked.bank.owner, asked.text, limit=LIMIT)
        both = {hit.memory.id for hit in few} & {hit.memory.id for hit in all}
        shares.append(len(both) / len(all))
    return float(np.mean(shares))
