"""What it costs to turn texts into vectors, beside fastembed on the same model files, with the same texts.

Ours embeds one text a run, so that a text has the same vector in any company; fastembed embeds padded batches. A round
gives every way the same texts. Figures are medians over the rounds; a ratio is taken within a round.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import psutil
from measure import Cost, Table, arguments, scratch

from holdfast.core.memory_settings import EmbeddingSettings
from holdfast.embeddings import Embeddings, Store
from holdfast.embeddings.known_models import KNOWN

OURS = "Embeddings.vectors"
BATCHES = {"fastembed, as it comes": 256, "fastembed, batches of 32": 32, "fastembed, one text a batch": 1}
TEXTS = 120  # in a round; fewer where there is little time
SEED = 6
NOTHING: list[Cost] = []

Way = Callable[[Sequence[str]], Awaitable[Sequence[Any]]]

SENTENCES = """
    She told us about the new flat near the river. Every Sunday morning he drinks coffee because of his work. They
    went to Paris last summer with friends who play chess, but never on holidays. Her brother has a garden and no
    doctor. The database was moved to another region and the invoices were late.
"""
CHARACTERS = "我他她们喜欢喝茶和咖啡因为工作明天去北京出差上个周末在公园下棋朋友说天气很好孩子学校医生电话会议"


def english(random: random.Random) -> str:
    """A sentence of 5 to 60 words."""
    return " ".join(random.choices(SENTENCES.split(), k=random.randint(5, 60)))


def chinese(random: random.Random) -> str:
    """A sentence of 8 to 80 characters."""
    return "".join(random.choices(CHARACTERS, k=random.randint(8, 80)))


def turns(data: Path) -> list[str]:
    """What was said in the dialogues of LoCoMo."""
    said: list[str] = []
    for talk in json.loads(data.read_text()):
        for turns in talk["conversation"].values():
            said += [turn["text"] for turn in turns if isinstance(turns, list) and turn.get("text")]
    return said


@asynccontextmanager
async def ours(store: Store) -> AsyncGenerator[Way]:
    """Our models, on a thread per core."""
    async with Embeddings(EmbeddingSettings(fetch=False), store=store) as embeddings:
        yield embeddings.vectors


def fastembed(store: Store, name: str, batch: int, folder: Path) -> Way:
    """fastembed on the same files, with as many threads as there are cores."""
    module: Any = import_module("fastembed")
    description: Any = import_module("fastembed.common.model_description")
    files = store.find(name)
    assert files is not None
    _lay_out(files.onnx.parent, folder)
    if name not in {each["model"] for each in module.TextEmbedding.list_supported_models()}:
        module.TextEmbedding.add_custom_model(
            model=name,
            pooling=description.PoolingType.CLS,
            normalization=True,
            sources=description.ModelSource(url="local"),
            dim=KNOWN[name].dimensions,
            model_file="model.onnx",
        )
    model = module.TextEmbedding(name, specific_model_path=str(folder), threads=psutil.cpu_count())

    async def embed(texts: Sequence[str]) -> Sequence[Any]:
        return list(model.embed(list(texts), batch_size=batch))

    return embed


def _lay_out(files: Path, folder: Path) -> None:
    """The model in a folder, with the small files that fastembed wants beside it."""
    if folder.exists():
        return
    folder.mkdir()
    for file in files.iterdir():
        (folder / file.name).symlink_to(file)
    special = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]"}
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 512, "pad_token": "[PAD]"}))
    (folder / "special_tokens_map.json").write_text(json.dumps(special))


async def spend(way: Way, texts: Sequence[str]) -> Cost:
    """What one text costs."""
    cpu, wall = time.process_time(), time.perf_counter()
    vectors = await way(texts)
    assert len(vectors) == len(texts)
    return Cost(time.process_time() - cpu, time.perf_counter() - wall).per(len(texts))


async def measure(texts: dict[str, list[str]], seconds: float) -> tuple[dict[str, dict[str, list[Cost]]], float]:
    """The costs of every way in every round, by model; and the least cosine between our vectors and the peer's."""
    store = Store()
    for name in KNOWN:
        store.fetch(name)
    found: dict[str, dict[str, list[Cost]]] = {}
    likeness = 1.0
    chance = random.Random(SEED)
    async with AsyncExitStack() as stack:
        way = await stack.enter_async_context(ours(store))
        folder = stack.enter_context(scratch())
        for name, some in texts.items():
            ways: dict[str, Way] = {OURS: way}
            if find_spec("fastembed") is not None:
                ways |= {way: fastembed(store, name, batch, folder / name) for way, batch in BATCHES.items()}
            for each in ways.values():
                await each(some[:4])
            alone = [(await each(some[:1]))[0] for each in ways.values()]
            likeness = min(likeness, *(float(numpy.dot(alone[0], vector)) for vector in alone))
            costs: dict[str, list[Cost]] = {each: [] for each in ways}
            end = time.monotonic() + seconds / len(texts)
            while time.monotonic() < end or not costs[OURS]:
                sample = chance.sample(some, min(TEXTS, len(some), max(8, int(4 * seconds))))
                for each in chance.sample(list(ways), len(ways)):
                    costs[each].append(await spend(ways[each], sample))
            found[name] = costs
    return found, likeness


def table(found: dict[str, dict[str, list[Cost]]], likeness: float, source: str) -> Table:
    """The medians, and how many times as fast as the peer."""
    cells = [["model", "way", "texts/s", "CPU ms a text", "of fastembed's best"]]
    figures: list[dict[str, object]] = []
    for model, ways in found.items():
        peers = [costs for way, costs in ways.items() if way != OURS]
        best = min(peers, key=lambda costs: statistics.median(cost.wall for cost in costs), default=NOTHING)
        for way, costs in ways.items():
            per_s = 1 / statistics.median(cost.wall for cost in costs)
            cpu = 1000 * statistics.median(cost.cpu for cost in costs)
            pairs = zip(costs, best, strict=False)
            ratio = statistics.median([theirs.wall / own.wall for own, theirs in pairs] or [0])
            figures.append({"model": model, "way": way, "per_s": per_s, "cpu_ms": cpu, "of_fastembed": ratio or None})
            cells.append([model, way, f"{per_s:.0f}", f"{cpu:.1f}", f"{ratio:.2f}x" if ratio else ""])
    notes = [
        f"The aim: at least 1.0x of fastembed at its best. Texts: {source}; up to {TEXTS} in a round.",
        f"The same text alone, embedded by both: cosine {likeness:.6f} at least.",
    ]
    if find_spec("fastembed") is None:
        notes[1] = "fastembed was left out: it is not installed here; `make bench` installs it."
    return Table(
        name="embed",
        title="What it costs to turn texts into vectors",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=["holdfast", "onnxruntime", "tokenizers", "fastembed"],
    )


def main() -> None:
    """Measure, print, keep."""
    if find_spec("fastembed") is None:
        from peers import enter_environment  # it needs more of the engine than there is in that environment

        enter_environment("embed")
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--data", type=Path)
    (data, sys.argv[1:]) = own.parse_known_args()
    options = arguments(f"{__doc__}\n--data FILE: embed what was said in LoCoMo's dialogues.", seconds=60)
    chance = random.Random(SEED)
    source = "made up of common words, 5 to 60 of them (Chinese: 8 to 80 characters)"
    texts = {
        "bge-small-en-v1.5-q": [english(chance) for _ in range(1000)],
        "bge-small-zh-v1.5-q": [chinese(chance) for _ in range(1000)],
    }
    if data.data is not None:
        source, texts = "the turns of LoCoMo", {"bge-small-en-v1.5-q": turns(data.data)}
    found, likeness = asyncio.run(measure(texts, options.seconds))
    table(found, likeness, source).publish(options.results)


if __name__ == "__main__":
    main()
