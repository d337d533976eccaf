"""mem0 and Hindsight beside us: each in a process and an environment of its own, on the same server."""

import hashlib
import json
import pickle
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Literal, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
from measure.helpers import Helper, helper
from measure.turns import Way

from holdfast.core.ids import uuid7
from holdfast.postgres.codecs import decode_vector, encode_vector
from peers import ENVIRONMENTS

Name = Literal["mem0", "hindsight"]
NAMES: dict[Name, str] = {"mem0": "mem0", "hindsight": "Hindsight"}
PACKAGES: dict[Name, str] = {"mem0": "mem0ai", "hindsight": "hindsight-api-slim"}
TOGETHER = 100  # memories that are stored at once where it does not matter


class Rememberer:
    """A peer; its vectors are given before they are needed."""

    def __init__(self, helper: Helper, folder: Path) -> None:
        self.process = helper
        self._folder = folder

    async def learn(self, texts: Sequence[str], vectors: Any) -> None:
        """Let it know the vectors of texts."""
        await self._give("learn", (list(texts), vectors))

    async def store(self, banks: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> None:
        """Let it remember texts under their ids, for each owner."""
        await self._give("store", list(banks))

    async def answers(self, questions: Sequence[tuple[str, str]], *, limit: int) -> list[list[str]]:
        """The ids of what it finds for each question to an owner."""
        await self._give("questions", list(questions))
        return await self._ask(do="answers", limit=limit)

    async def adding(self, texts: Sequence[str], name: str, together: int) -> Way:
        """Adding texts to one owner after the other, so many at once."""

        async def calls(seconds: float) -> Sequence[float]:
            return await self._ask(do="add", seconds=seconds)

        await self._give("texts", list(texts), name=name, together=together)
        return Way(calls, together, [self.process])

    async def searching(self, questions: Sequence[tuple[str, str]], *, limit: int) -> Way:
        """Asking questions to owners, again and again."""

        async def calls(seconds: float) -> Sequence[float]:
            return await self._ask(do="search", seconds=seconds, limit=limit)

        await self._give("questions", list(questions))
        return Way(calls, 1, [self.process])

    async def _give(self, do: str, what: object, **more: object) -> None:
        path = self._folder / "given"
        path.write_bytes(pickle.dumps(what))
        await self._ask(do=do, path=str(path), **more)

    async def _ask(self, **asked: object) -> Any:
        self.process.ask(json.dumps(asked))
        return json.loads(await self.process.answer())


def is_installed(name: Name) -> bool:
    """Whether it has its environment."""
    return (ENVIRONMENTS / name / ".made").exists()


def versions(names: Iterable[Name]) -> str:
    """What runs in the environments of those that have one."""
    found: list[str] = []
    for name in filter(is_installed, names):
        folders = map(str, (ENVIRONMENTS / name / "lib").glob("python*/site-packages"))
        found += [f"{NAMES[name]} {each.version}" for each in distributions(name=PACKAGES[name], path=list(folders))]
    return ", ".join(found)


@asynccontextmanager
async def rememberer(name: Name, url: str, folder: Path, *, dimensions: int) -> AsyncGenerator[Rememberer]:
    """A peer on this database, with this folder for its files."""
    folder.mkdir(parents=True)
    python = ENVIRONMENTS / name / "bin" / "python"
    async with helper("rememberer", name, url, str(folder), str(dimensions), python=python) as started:
        yield Rememberer(started, folder)


class Mem0Table:
    """mem0's own table, filled past mem0: by its own calls a hundred thousand memories would take an hour."""

    def __init__(self, connection: Any, dimensions: int) -> None:
        self._connection = connection
        self._table = f"mem0_{dimensions}"
        self._index = f"{self._table}_hnsw_idx"

    @classmethod
    @asynccontextmanager
    async def fill(cls, url: str, *, dimensions: int) -> AsyncGenerator["Mem0Table"]:
        """Take away its vector index while it is filled, and make the same anew."""
        connection = await cast(Callable[..., Awaitable[Any]], asyncpg.connect)(url)
        await connection.set_type_codec(
            "vector", schema="public", encoder=encode_vector, decoder=decode_vector, format="binary"
        )
        table = cls(connection, dimensions)
        definition = await connection.fetchval("select indexdef from pg_indexes where indexname = $1", table._index)
        await connection.execute(f"drop index {table._index}")
        yield table
        await connection.execute(definition)
        await connection.execute(f"vacuum analyze {table._table}")
        await connection.close()

    async def store(self, owner: str, texts: Sequence[str], vectors: Any) -> None:
        """Copy texts, each under its place as its name."""
        rows = [
            (uuid7(), vector, json.dumps(_payload(owner, text, str(place))))
            for place, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True))
        ]
        await self._connection.copy_records_to_table(self._table, records=rows)


def _payload(owner: str, text: str, name: str) -> dict[str, str]:
    at = "2026-01-01T00:00:00+00:00"
    known = {"user_id": owner, "role": "user", "name": name, "data": text, "text_lemmatized": text}
    return {**known, "hash": hashlib.md5(text.encode()).hexdigest(), "created_at": at, "updated_at": at}
