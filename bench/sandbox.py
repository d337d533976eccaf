"""What the sandbox costs: a script in it, next to a bare process and, if it is there, bubblewrap; in one run.

With 20 seconds or more, the attacks on it are made and counted, too.
"""

import asyncio
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable

from measure import Table, arguments

from holdfast.execution.sandbox import SandboxLimits, SandboxProcesses, Surroundings
from holdfast.execution.sandbox.attacks import run_attacks
from holdfast.execution.sandbox.languages import LANGUAGES, find_interpreter
from holdfast.execution.sandbox.sandbox import Sandbox

CODE = {"python": "print(1)", "javascript": "console.log(1)", "bash": "echo 1"}
FLAG = {"python": "-c", "javascript": "-e", "bash": "-c"}
LIMITS = SandboxLimits()
FEWEST = 3  # runs
WITH_ATTACKS = 20.0  # seconds
UNSHARED = ("--unshare-all", "--clearenv", "--ro-bind", "/", "/", "--dev", "/dev")


async def bare(*command: str) -> None:
    """Run a program as it is."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said == b"1\n", said


async def measure(seconds: float, run: Callable[[], Awaitable[object]]) -> list[float]:
    """Return the times of runs one after another, in milliseconds."""
    await run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < FEWEST or time.perf_counter() < end:
        began = time.perf_counter()
        await run()
        times.append(1000 * (time.perf_counter() - began))
    return times


async def main() -> None:
    """Measure, and keep the figures."""
    options = arguments(__doc__ or "", seconds=30)
    sandbox = Sandbox(SandboxProcesses())
    bubblewrap = shutil.which("bwrap")
    cells, figures, notes = [("language", "way", "median ms", "p95 ms", "runs")], list[dict[str, object]](), list[str]()
    for language in LANGUAGES:
        interpreter = find_interpreter(language, {})
        command = (str(interpreter.program), FLAG[language], CODE[language])

        async def sandboxed(command: tuple[str, ...] = command) -> None:
            result = await sandbox.run(command, limits=LIMITS, surroundings=Surroundings())
            assert result.stdout == b"1\n", result

        ways: dict[str, Callable[[], Awaitable[object]]] = {"bare process": lambda c=command: bare(*c)}
        if bubblewrap is not None:
            ways["bubblewrap"] = lambda c=command: bare(bubblewrap, *UNSHARED, *c)
        ways["sandbox"] = sandboxed
        for way, run in ways.items():
            times = await measure(options.seconds / len(LANGUAGES) / len(ways), run)
            median, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            cells.append((language, way, f"{median:.1f}", f"{p95:.1f}", str(len(times))))
            figures.append({"language": language, "way": way, "median_ms": median, "p95_ms": p95, "runs": len(times)})
        if options.seconds >= WITH_ATTACKS:
            results = await run_attacks(sandbox, interpreter)
            succeeded = sum(result.succeeds for result in results)
            notes.append(f"{language}: {len(results)} attacks, of which {succeeded} succeed.")
    Table("sandbox", "A script in the sandbox", cells, figures, notes, ["holdfast"]).publish(options.results)


if __name__ == "__main__":
    asyncio.run(main())
