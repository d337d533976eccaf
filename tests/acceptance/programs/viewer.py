"""Watches a conversation on a node of its own: `viewer.py CONVERSATION [CURSOR]`; each event is a line of JSON.

The environment says where. It ends when the run has, or when it is killed.
"""

import asyncio
import sys
from uuid import UUID

import msgspec

from holdfast.engine import open_engine


async def main(conversation: str, cursor: str | None = None) -> None:
    """Watch until the run ends."""
    async with open_engine() as engine, engine.agents.watch(UUID(conversation), "support", since=cursor) as events:
        async for event in events:
            sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
            sys.stdout.flush()
            if event.kind in ("done", "error"):
                return


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
