"""A peer that remembers, in an environment of its own: mem0 or Hindsight on a database, with vectors made before.

    rememberer.py mem0|hindsight URL FOLDER

Answers one line of JSON for each line of JSON; large things lie in pickles, whose paths are given. Imports nothing of
ours: our packages are not installed where it runs.
"""

import asyncio
import importlib
import itertools
import json
import logging
import os
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

OWNER = 1000  # memories that one owner gets

os.environ |= {
    "MEM0_TELEMETRY": "False",
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    "HINDSIGHT_API_OTEL_TRACES_ENABLED": "false",
    "OPENAI_API_KEY": "not used",
    "HF_HUB_OFFLINE": "1",
}


def part(module: str, name: str) -> Any:
    """What a peer's module calls by this name."""
    return getattr(importlib.import_module(module), name)


class Vectors:
    """What the texts mean."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def learn(self, path: str) -> None:
        """Know these, too."""
        texts, vectors = pickle.loads(Path(path).read_bytes())
        self._known.update(zip(map(str.strip, texts), vectors, strict=True))

    def of(self, text: str) -> list[float]:
        """A text's; mem0 asks without the blanks around it."""
        return self._known[text.strip()].tolist()


class Peer(Protocol):
    """A peer as its users call it."""

    async def add(self, owner: str, texts: Sequence[str], ids: Sequence[str]) -> None: ...

    async def search(self, owner: str, question: str, limit: int) -> list[str]: ...

    async def close(self) -> None: ...


class Mem0:
    """mem0 on pgvector, as it is set up by itself, without a language model."""

    def __init__(self, url: str, folder: Path, vectors: Vectors, dimensions: int) -> None:
        os.environ["MEM0_DIR"] = str(folder)

        def embed(_: object, text: str, memory_action: str | None = None) -> list[float]:
            return vectors.of(text)

        store = {"connection_string": url, "embedding_model_dims": dimensions, "collection_name": f"mem0_{dimensions}"}
        self._memory: Any = part("mem0", "Memory").from_config({
            "vector_store": {"provider": "pgvector", "config": store},
            "embedder": {"provider": "openai", "config": {"embedding_dims": dimensions}},
            "history_db_path": str(folder / "history.db"),
        })  # fmt: skip
        self._memory.embedding_model = type(
            "Known", (part("mem0.embeddings.base", "EmbeddingBase"),), {"embed": embed}
        )()

    async def add(self, owner: str, texts: Sequence[str], ids: Sequence[str]) -> None:
        """All that go in one call have one metadata: so it is one call for each where ids are wanted."""
        if not ids:
            messages = [{"role": "user", "content": text} for text in texts]
            self._memory.add(messages, user_id=owner, infer=False)
        for text, id in zip(texts, ids, strict=False):
            self._memory.add([{"role": "user", "content": text}], user_id=owner, infer=False, metadata={"name": id})

    async def search(self, owner: str, question: str, limit: int) -> list[str]:
        """The ids of what it finds."""
        found = self._memory.search(question, filters={"user_id": owner}, top_k=limit)
        return [hit["metadata"]["name"] if hit["metadata"] else hit["id"] for hit in found["results"]]

    async def close(self) -> None:
        """Let go."""
        self._memory.close()
        self._memory.vector_store.connection_pool.close()


class Hindsight:
    """Hindsight's engine without a language model and without a reranker, which would have to be downloaded."""

    def __init__(self, engine: Any, context: Any) -> None:
        self._engine = engine
        self._context = context
        self._ids: dict[str, str] = {}

    @classmethod
    async def open(cls, url: str, vectors: Vectors, dimensions: int) -> "Hindsight":
        """On a database of its own."""
        engine = "hindsight_api.engine"

        async def initialize(_: object) -> None:
            pass

        async def encode(_: object, texts: list[str]) -> list[list[float]]:
            return [vectors.of(text.partition(" (happened in ")[0]) for text in texts]  # it adds the month

        embeddings = {"provider_name": "known", "dimension": dimensions, "initialize": initialize, "encode": encode}
        made = part(f"{engine}.memory_engine", "MemoryEngine")(
            db_url=url,
            memory_llm_provider="none",
            embeddings=type("Known", (part(f"{engine}.embeddings", "Embeddings"),), embeddings)(),
            cross_encoder=part(f"{engine}.cross_encoder", "RRFPassthroughCrossEncoder")(),
            task_backend=part(f"{engine}.task_backend", "SyncTaskBackend")(),
        )
        await made.initialize()
        return cls(made, part("hindsight_api.models", "RequestContext")())

    async def add(self, owner: str, texts: Sequence[str], ids: Sequence[str]) -> None:
        """Each a document of one piece."""
        contents = [{"content": text} for text in texts]
        await self._engine.retain_batch_async(owner, contents, request_context=self._context)
        self._ids.update(zip(texts, ids, strict=False))

    async def search(self, owner: str, question: str, limit: int) -> list[str]:
        """The ids of what it finds."""
        found = await self._engine.recall_async(owner, question, request_context=self._context)
        return [self._ids.get(hit.text) or hit.id for hit in found.results[:limit]]

    async def close(self) -> None:
        """Let go."""
        await self._engine.close()


class Answers:
    """What the peer does on demand."""

    def __init__(self, peer: Peer, vectors: Vectors) -> None:
        self._peer = peer
        self._vectors = vectors
        self._questions: list[tuple[str, str]] = []
        self._fresh: Iterator[tuple[str, Sequence[str]]] = iter(())

    async def answer(self, asked: dict[str, Any]) -> object:
        """Do it."""
        path = asked.get("path", "")
        match asked["do"]:
            case "learn":
                return self._vectors.learn(path)
            case "store":
                for owner, texts, ids in pickle.loads(Path(path).read_bytes()):
                    await self._peer.add(owner, texts, ids)
            case "texts":
                self._fresh = _fresh(pickle.loads(Path(path).read_bytes()), asked["name"], asked["together"])
            case "add":
                return await self._timed(asked["seconds"], self._add)
            case "questions":
                self._questions = pickle.loads(Path(path).read_bytes())
            case "answers":
                return [await self._peer.search(*each, limit=asked["limit"]) for each in self._questions]
            case "search":
                cycle = itertools.cycle(self._questions)
                return await self._timed(
                    asked["seconds"], lambda: self._peer.search(*next(cycle), limit=asked["limit"])
                )
            case other:
                raise AssertionError(other)
        return None

    async def _add(self) -> None:
        owner, texts = next(self._fresh)
        await self._peer.add(owner, texts, [])

    async def _timed(self, seconds: float, call: Any) -> list[float]:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            await call()
            times.append(time.perf_counter() - start)
        return times


def _fresh(texts: Sequence[str], name: str, together: int) -> Iterator[tuple[str, Sequence[str]]]:
    for number in itertools.count():
        start = number * together % len(texts)
        yield f"{name}-{number * together // OWNER}", texts[start : start + together]


async def main() -> None:
    """Answer until the standard input ends."""
    logging.disable(logging.ERROR)
    name, url, folder, dimensions = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    said, sys.stdout = sys.stdout, sys.stderr  # what the peer prints is no answer
    vectors = Vectors()
    peer: Peer = (
        Mem0(url, folder, vectors, dimensions)
        if name == "mem0"
        else await Hindsight.open(url, vectors, dimensions)
    )  # fmt: skip
    answers = Answers(peer, vectors)
    print("ready", file=said, flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await answers.answer(json.loads(line))), file=said, flush=True)
    await peer.close()


if __name__ == "__main__":
    asyncio.run(main())
