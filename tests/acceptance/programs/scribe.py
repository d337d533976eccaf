"""Writes in conversations, and changes and deletes what is there: `scribe.py SEED CHANGES CONVERSATION…`.

The environment says where. Half of the changes are made to the first four conversations. One in fifty is said to the
agent, which answers; the others ask it for nothing.
"""

import asyncio
import random
import sys
from uuid import UUID

from holdfast.conversations import NodeInput
from holdfast.core.errors import Conflict, NotFound
from holdfast.engine import Engine, open_engine

WRITERS = 8
BUSY = 4  # conversations that become longer than a view
SAID = ("text:system:clock", "text:agent:support", "text:agent:tool", "event:agent:support")


async def scribble(engine: Engine, dice: random.Random, talks: list[UUID], changes: int) -> None:
    """Make so many changes, each to a conversation that chance picks, half of them to the first few."""
    for number in range(changes):
        talk = dice.choice(talks[:BUSY] if number % 2 else talks[BUSY:])
        await change(engine, dice, talk, f"{number}: " + "word " * dice.choice([0, 1, 10, 300]))


async def change(engine: Engine, dice: random.Random, talk: UUID, text: str) -> None:
    """Make one change; what another has changed or deleted meanwhile stays as it is."""
    way = dice.random()
    if way < 0.02:
        await engine.conversations.append(talk, "Hello!", context="text:user:ann")
        return
    if way < 0.6:
        await engine.conversations.append(talk, text, context="event:system:clock")
        return
    if way < 0.7:
        await engine.conversations.append_all(talk, [NodeInput(content=text, context=c) for c in dice.sample(SAID, 3)])
        return
    if way < 0.75:
        await engine.state.set(talk, {"last": text})
        return
    nodes = await engine.conversations.last(talk, 50)
    if not nodes:
        return
    node = dice.choice(nodes)
    try:
        if way < 0.92:
            await engine.conversations.edit(node.id, text, version=node.version)
        else:
            await engine.conversations.delete(node.id, version=node.version)
    except (Conflict, NotFound):
        return


async def main(seed: str, changes: str, *talks: str) -> None:
    """Write with several hands."""
    found = [UUID(talk) for talk in talks]
    async with open_engine() as engine:
        share = int(changes) // WRITERS
        await asyncio.gather(*(scribble(engine, random.Random(f"{seed} {n}"), found, share) for n in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
