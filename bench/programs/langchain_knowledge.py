"""LangChain's splitter and its vector store on a database, in an environment of its own, with vectors made before.

    langchain_knowledge.py URL TOKENIZER SIZE OVERLAP

Answers one line of JSON for each line of JSON; large things lie in pickles, whose paths are given. Imports nothing of
ours: our packages are not installed where it runs.
"""

import json
import logging
import pickle
import sys
import time
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_postgres import PGVector
from langchain_text_splitters import RecursiveCharacterTextSplitter
from tokenizers import Tokenizer

TOGETHER = 1000  # rows in one call


class Unused(Embeddings):
    """The store wants some; it is given vectors alone."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Never called."""
        raise AssertionError(texts)

    def embed_query(self, text: str) -> list[float]:
        """Never called."""
        raise AssertionError(text)


class Knowledge:
    """The splitter and the store as their users call them."""

    def __init__(self, url: str, tokenizer: str, size: int, overlap: int) -> None:
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._splitter = RecursiveCharacterTextSplitter(
            chunk_size=size, chunk_overlap=overlap, length_function=self._length
        )
        self._store: Any = PGVector(embeddings=Unused(), connection=url, use_jsonb=True)

    def split(self, texts: dict[str, str]) -> tuple[list[tuple[str, int, str, int]], float]:
        """The pieces of texts with their places and tokens, and the seconds of CPU that it takes to split."""
        started = time.process_time()
        found = {name: self._splitter.split_text(text) for name, text in texts.items()}
        spent = time.process_time() - started
        pieces: list[tuple[str, int, str, int]] = []
        for name, some in found.items():
            place = -1
            for piece in some:
                place = texts[name].index(piece, place + 1)
                pieces.append((name, place, piece, self._length(piece)))
        return pieces, spent

    def store(self, texts: list[str], vectors: list[list[float]]) -> None:
        """Keep texts; their ids are their places."""
        for start in range(0, len(texts), TOGETHER):
            self._store.add_embeddings(
                texts[start : start + TOGETHER],
                vectors[start : start + TOGETHER],
                ids=[str(place) for place in range(start, min(start + TOGETHER, len(texts)))],
            )

    def search(self, vectors: list[list[float]], limit: int) -> tuple[list[list[int]], list[float]]:
        """The places of the nearest, and the seconds that each search takes."""
        answers: list[list[int]] = []
        times: list[float] = []
        for vector in vectors:
            started = time.perf_counter()
            hits = self._store.similarity_search_by_vector(vector, k=limit)
            times.append(time.perf_counter() - started)
            answers.append([int(hit.id or 0) for hit in hits])
        return answers, times

    def _length(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))


def main() -> None:
    """Answer until the standard input ends."""
    logging.disable(logging.ERROR)
    url, tokenizer, size, overlap = sys.argv[1:]
    said, sys.stdout = sys.stdout, sys.stderr
    knowledge = Knowledge(url, tokenizer, int(size), int(overlap))
    print("ready", file=said, flush=True)
    while line := sys.stdin.readline():
        asked: dict[str, Any] = json.loads(line)
        path = Path(asked["path"])
        given = pickle.loads(path.read_bytes())
        answer = getattr(knowledge, asked["do"])(*given)
        path.write_bytes(pickle.dumps(answer))
        print(json.dumps("done"), file=said, flush=True)


if __name__ == "__main__":
    main()
