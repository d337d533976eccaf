"""Speaks in conversations: `talker.py DATA LEDGER WRITERS SESSION…`, one task for each writer.

Each line of the ledger is a node that was acknowledged: its session, number, key and content. A writer that does not
know whether its node was stored says it again with the same key; SIGTERM ends it.
"""

import asyncio
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from holdfast.conversations import Node, NodeInput
from holdfast.core.errors import Conflict, DatabaseAway
from holdfast.engine import Engine, open_engine

CONTEXT = "text:user:talker"


async def talk(engine: Engine, ledger: Path, sessions: tuple[str, ...]) -> None:
    """Say one thing after the other for ever, in any of the conversations."""
    with ledger.open("ab", buffering=0) as acknowledged:
        while True:
            session = random.choice(sessions)
            for node in await said(engine, session, str(uuid4())):
                acknowledged.write(f"{session} {node.seq} {node.key} {node.content}\n".encode())


async def said(engine: Engine, session: str, key: str) -> list[Node]:
    """Say it until it is known to be stored."""
    while True:
        with suppress(DatabaseAway, Conflict):  # not known whether it was, or others were faster: the same key again
            return await say(engine, session, key)


async def say(engine: Engine, session: str, key: str) -> list[Node]:
    """Append a node, or a few that belong together: by a call alone, expecting a revision, or in a transaction."""
    way = int(key[0], 16) % 4
    found = await engine.conversations.ensure(session, user="talker")
    if way == 0:
        drafts = [NodeInput(content=f"{key}/{part}", context=CONTEXT, key=f"{key}/{part}") for part in range(3)]
        return await engine.conversations.append_all(found.id, drafts, state={"last": key})
    if way == 1:
        async with engine.transaction() as tx:
            return [await engine.conversations.append(found.id, key, context=CONTEXT, key=key, tx=tx)]
    expect = found.revision if way == 2 else None
    return [
        await engine.conversations.append(
            found.id, key, context=CONTEXT, key=key, expect=expect, state={"last": key, "user:last": key}
        )
    ]


async def main(data: str, ledger: str, writers: str, *sessions: str) -> None:
    """Open the engine, and talk until told to end."""
    async with open_engine(data=data) as engine:
        talking = asyncio.gather(*(talk(engine, Path(ledger), sessions) for _ in range(int(writers))))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, talking.cancel)
        with suppress(asyncio.CancelledError):
            await talking


if __name__ == "__main__":
    while True:
        try:
            asyncio.run(main(*sys.argv[1:]))
        except DatabaseAway:
            continue
        break
