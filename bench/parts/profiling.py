"""What the functions of our gateway take of the CPU of a call, as samples of it tell."""

import json
import signal
from pathlib import Path

from parts.loading import Ask, Loader, Turn

LEAST = 0.008  # of all samples, in which a function or what it called was at work, if it is told of
EVERYWHERE = 0.98  # of all samples: what runs everything tells nothing


async def sample(load: Loader, ask: Ask, seconds: float) -> Turn:
    """Let 32 clients call, and have the server note what it is at."""
    await load.put(ask, clients=1, seconds=1)
    ask.front.process.send(signal.SIGUSR2)
    turn = await load.put(ask, clients=32, seconds=seconds)
    assert not turn.wrong, turn.said
    return turn


def report(way: str, file: Path, turn: Turn) -> str:
    """The functions, the dearest first: of the µs of a call, those with what they call, and those of their own."""
    cpu, told = turn.cpu, json.loads(file.read_text())
    samples = max(1, told["samples"])
    lines = [f"{way}: {turn.calls} calls, {1e6 * cpu:.0f} µs of CPU each"]
    lines += [f"{samples} samples", "with others   own µs"]
    for function, times in sorted(told["whole"].items(), key=lambda each: -each[1]):
        if LEAST <= times / samples <= EVERYWHERE:
            figures = f"{1e6 * cpu * times / samples:11.1f} {1e6 * cpu * told['own'].get(function, 0) / samples:8.1f}"
            lines.append(f"{figures}  {function}")
    return "\n".join(lines)
