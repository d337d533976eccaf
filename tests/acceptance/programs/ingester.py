"""Adds the files of a folder as documents, and waits until all are ingested. What it embeds is written to a file."""

import asyncio
import hashlib
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from holdfast.bus.notifications import until
from holdfast.core.config import load_config
from holdfast.embeddings.embedder import Vector
from holdfast.embeddings.language import Language
from holdfast.engine import open_engine
from holdfast.knowledge import ingester
from holdfast.knowledge.jobs import ENDED

FOLDER = Path(sys.argv[1])
WRITTEN = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
ingester.LEASE = timedelta(seconds=2)
ingester.RENEW = 0.5
ingester.FIRST_PAUSE = 0.05


def say(what: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


async def vectors(texts: Sequence[str], languages: Sequence[Language] | None = None) -> list[Vector | None]:
    """Return a vector for each text, after it is written down."""
    digests = [hashlib.blake2b(text.encode(), digest_size=8) for text in texts]
    os.write(WRITTEN, "".join(f"{digest.hexdigest()}\n" for digest in digests).encode())
    numbers = [int.from_bytes(digest.digest()[:2]) % 384 for digest in digests]
    return [[float(place == number) for place in range(384)] for number in numbers]


async def main() -> None:
    """Add the files, and wait."""
    async with open_engine(config=load_config()) as engine:
        engine.embeddings.vectors = vectors
        for path in sorted(FOLDER.iterdir()):
            await engine.knowledge.add(path, wait=False)
        say("added")
        async with engine.postgres.listen(ENDED) as woken:
            while any(job.is_open for job in await engine.knowledge.jobs(limit=1000)):
                await until(woken)
        say("done")


if __name__ == "__main__":
    asyncio.run(main())
