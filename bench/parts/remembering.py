"""Adding memories: one by one and many at once, with vectors that are there already and with the model."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from measure.rounds import Server
from measure.turns import Turn, Way, again_and_again, take_turns
from peers.rememberers import Rememberer

from holdfast.engine import Engine
from holdfast.memory import Memories
from holdfast.memory.owners import Owner, user
from parts import Case
from parts.banks import Bank, Known, Tongue

TOGETHER = 100
OWNER = 1000  # memories that one owner gets
ROUNDS = 3

REMEMBER = "memory.remember"
MANY = "memory.remember_many"


def fresh(drafts: Sequence[Any], name: str, together: int) -> Iterator[tuple[Owner, Sequence[Any]]]:
    """The same drafts for one owner after the other."""
    for number in itertools.count():
        start = number * together % len(drafts)
        yield user(f"{name}-{number * together // OWNER}"), drafts[start : start + together]


def ours(memories: Memories, drafts: Sequence[Any], name: str, together: int) -> Way:
    """Our service."""
    new = fresh(drafts, name, together)

    async def one() -> None:
        owner, some = next(new)
        await memories.remember(owner, **some[0])

    async def many() -> None:
        owner, some = next(new)
        await memories.remember_many(owner, some)

    return Way(again_and_again(one if together == 1 else many), together)


async def remembering(
    engine: Engine, apart: Memories, known: Known, *, peers: Mapping[str, Rememberer], seconds: float, server: Server
) -> dict[Case, dict[str, list[Turn]]]:
    """What it costs to add a memory."""
    bank = Bank(Tongue(), -1 % 2**32, OWNER)
    drafts = bank.drafts()
    known.learn([draft["content"] for draft in drafts], bank.vectors)
    one, many = Case("add, embedding apart", "one by one"), Case("add, embedding apart", f"{TOGETHER} at a time")
    one_whole, many_whole = (
        Case("add, with the model", "one by one"),
        Case("add, with the model", f"{TOGETHER} at a time"),
    )
    cases = {
        one: {REMEMBER: ours(apart, drafts, "one", 1)},
        many: {MANY: ours(apart, drafts, "many", TOGETHER)},
        one_whole: {REMEMBER: ours(engine.memory, drafts, "one-whole", 1)},
        many_whole: {MANY: ours(engine.memory, drafts, "many-whole", TOGETHER)},
    }
    texts = [draft["content"] for draft in drafts]
    for peer in peers.values():
        await peer.learn(texts, bank.vectors)
    together = {one: 1, many: TOGETHER}
    share = seconds / (len(cases) + len(together) * len(peers))
    found: dict[Case, dict[str, list[Turn]]] = {}
    for case, ways in cases.items():
        if case in together:
            for name, peer in peers.items():
                ways[name] = await peer.adding(texts, case.size.replace(" ", "-"), together[case])
        found[case] = await take_turns(ways, rounds=ROUNDS, seconds=share * len(ways), server=server)
    return found
