"""Agents that do turns, in a process of its own.

    turner.py WAY ADDRESS FOLDER

Says `ready`; each line of JSON says how many conversations to have at once, of how many turns, for how many seconds;
the answer is how long each turn took. A conversation is held to its end, so that all lengths of history count alike.
"""

import asyncio
import itertools
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import uvloop
from peers.turners import ANSWER, WAYS, Ask, message


async def talk(ask: Ask, session: str, turns: int) -> list[float]:
    """Have a conversation; each has a user of its own."""
    times: list[float] = []
    for number in range(turns):
        start = time.perf_counter()
        answer = await ask(f"user of {session}", session, message(number))
        times.append(time.perf_counter() - start)
        assert answer == ANSWER, answer
    return times


async def main() -> None:
    """Have conversations until the standard input ends."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    way, url, folder = sys.argv[1:]
    numbers = itertools.count()
    async with WAYS[way](url, Path(folder)) as ask:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            end = time.perf_counter() + asked["seconds"]

            async def work(turns: int = asked["turns"], end: float = end) -> list[float]:
                times = await talk(ask, f"session-{next(numbers)}", turns)
                while time.perf_counter() < end:
                    times += await talk(ask, f"session-{next(numbers)}", turns)
                return times

            held = await asyncio.gather(*(work() for _ in range(asked["conversations"])))
            print(json.dumps([seconds for times in held for seconds in times]), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
