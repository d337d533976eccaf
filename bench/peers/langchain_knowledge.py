"""LangChain's splitter and PGVector beside us: in a process and an environment of their own, on the same server."""

import json
import pickle
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from measure.helpers import Helper, helper

from peers import ENVIRONMENTS

ENVIRONMENT = ENVIRONMENTS / "knowledge"
PACKAGES = ("langchain-text-splitters", "langchain-postgres", "pgvector")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text, as LangChain splits it."""

    name: str
    start: int
    text: str
    tokens: int


class LangChain:
    """The peer; its vectors are given."""

    def __init__(self, helper: Helper, folder: Path) -> None:
        self._helper = helper
        self._path = folder / "given"

    async def split(self, texts: Mapping[str, str]) -> tuple[list[Piece], float]:
        """The pieces of texts, and the seconds of CPU that it takes to split them."""
        pieces, seconds = await self._ask("split", dict(texts))
        return [Piece(*piece) for piece in pieces], seconds

    async def store(self, texts: Sequence[str], vectors: Any) -> None:
        """Keep texts with their vectors."""
        await self._ask("store", list(texts), vectors.tolist())

    async def search(self, vectors: Any, *, limit: int) -> tuple[list[list[int]], list[float]]:
        """The places of the texts that are nearest to each vector, and the seconds of each search."""
        return await self._ask("search", vectors.tolist(), limit)

    async def _ask(self, do: str, *given: object) -> Any:
        self._path.write_bytes(pickle.dumps(given))
        self._helper.ask(json.dumps({"do": do, "path": str(self._path)}))
        assert json.loads(await self._helper.answer()) == "done"
        return pickle.loads(self._path.read_bytes())


def is_installed() -> bool:
    """Whether it has its environment."""
    return (ENVIRONMENT / ".made").exists()


def versions() -> str:
    """What runs in its environment."""
    folders = [str(each) for each in (ENVIRONMENT / "lib").glob("python*/site-packages")]
    found = (f"{name} {each.version}" for name in PACKAGES for each in distributions(name=name, path=folders))
    return ", ".join(found)


@asynccontextmanager
async def langchain(url: str, folder: Path, *, tokenizer: Path, size: int, overlap: int) -> AsyncGenerator[LangChain]:
    """LangChain on this database, with this folder for what it is given."""
    folder.mkdir(parents=True)
    address = url.replace("postgresql://", "postgresql+psycopg://")
    python = ENVIRONMENT / "bin" / "python"
    arguments = (address, str(tokenizer), str(size), str(overlap))
    async with helper("langchain_knowledge", *arguments, python=python) as started:
        yield LangChain(started, folder)
