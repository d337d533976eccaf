"""LangChain's loaders, splitter and vector store on a database, in an environment of its own.

    langchain_ingester.py URL TOKENIZER SIZE OVERLAP FOLDER

Answers one line of JSON for each line of JSON: `{"files": […], "kind": "pdf", "collection": "…", "embeds": false}`. To
embed, it asks for vectors by `{"texts": PATH}` and reads them from the same file. Imports nothing of ours.
"""

import json
import logging
import pickle
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_postgres import PGVector  # noqa: E402
from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

loaders: Any = import_module("langchain_community.document_loaders")
LOADERS: dict[str, Any] = {
    "pdf": loaders.PyPDFLoader,
    "docx": loaders.Docx2txtLoader,
    "html": loaders.BSHTMLLoader,
    "md": loaders.TextLoader,
    "txt": loaders.TextLoader,
    "csv": loaders.CSVLoader,
}
DIMENSIONS = 384


class Given(Embeddings):
    """Constant vectors, or those that the benchmark makes with its model."""

    def __init__(self, said: Any, path: Path) -> None:
        self.embeds = False
        self._said = said
        self._path = path

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts."""
        if not self.embeds:
            return [[1.0] + [0.0] * (DIMENSIONS - 1)] * len(texts)
        self._path.write_bytes(pickle.dumps(texts))
        print(json.dumps({"texts": str(self._path)}), file=self._said, flush=True)
        sys.stdin.readline()
        return pickle.loads(self._path.read_bytes())

    def embed_query(self, text: str) -> list[float]:
        """Never called."""
        raise AssertionError(text)


def main() -> None:
    """Answer until the standard input ends."""
    logging.disable(logging.ERROR)
    url, tokenizer_path, size, overlap, folder = sys.argv[1:]
    said, sys.stdout = sys.stdout, sys.stderr
    tokenizer: Any = Tokenizer.from_file(tokenizer_path)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def length(text: str) -> int:
        return len(tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False))

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=int(size),
        chunk_overlap=int(overlap),
        length_function=length,
    )
    vectors = Given(said, Path(folder) / "texts")
    print("ready", file=said, flush=True)
    while line := sys.stdin.readline():
        asked: dict[str, Any] = json.loads(line)
        vectors.embeds = asked["embeds"]
        store = PGVector(embeddings=vectors, collection_name=asked["collection"], connection=url, use_jsonb=True)
        chunks, failed = 0, 0
        wall, cpu = time.perf_counter(), time.process_time()
        for name in asked["files"]:
            try:
                parts = splitter.split_documents(LOADERS[asked["kind"]](name).load())
                if parts:
                    store.add_documents(parts)
            except Exception:  # noqa: BLE001 - a file that its loader, its splitter or its store refuses
                failed += 1
            else:
                chunks += len(parts)
        print(
            json.dumps(
                {
                    "wall": time.perf_counter() - wall,
                    "cpu": time.process_time() - cpu,
                    "chunks": chunks,
                    "failed": failed,
                }
            ),
            file=said,
            flush=True,
        )


if __name__ == "__main__":
    main()
