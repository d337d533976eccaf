"""What the sandbox costs: the start of a script in it, next to a bare process and, if it is there, bubblewrap.

ARGS="--runs 100" measures more runs.
"""

import argparse
import asyncio
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable

from holdfast.execution.sandbox import SandboxLimits, SandboxProcesses, Surroundings
from holdfast.execution.sandbox.attacks import run_attacks
from holdfast.execution.sandbox.languages import LANGUAGES, find_interpreter
from holdfast.execution.sandbox.sandbox import Sandbox

CODE = {"python": "print(1)", "javascript": "console.log(1)", "bash": "echo 1"}
FLAG = {"python": "-c", "javascript": "-e", "bash": "-c"}
LIMITS = SandboxLimits()


async def bare(*command: str) -> None:
    """Run a program as it is."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said == b"1\n", said


async def measure(runs: int, run: Callable[[], Awaitable[object]]) -> str:
    """Return the median and the 95th percentile of the time of a run, in milliseconds."""
    await run()
    times: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        await run()
        times.append(1000 * (time.perf_counter() - began))
    return f"{statistics.median(times):8.1f} {statistics.quantiles(times, n=20)[-1]:8.1f}"


async def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=50)
    runs: int = parser.parse_args().runs
    sandbox = Sandbox(SandboxProcesses())
    bubblewrap = shutil.which("bwrap")
    print(f"{'':34}{'median':>8} {'p95':>8}  ms, {runs} runs one after another")
    for language in LANGUAGES:
        interpreter = find_interpreter(language, {})
        command = [str(interpreter.program), FLAG[language], CODE[language]]

        async def sandboxed(command: list[str] = command) -> None:
            result = await sandbox.run(command, limits=LIMITS, surroundings=Surroundings())
            assert result.stdout == b"1\n", result

        print(f"{language + ', bare process':34}{await measure(runs, lambda command=command: bare(*command))}")
        if bubblewrap is not None:
            wrapped = [bubblewrap, "--unshare-all", "--clearenv", "--ro-bind", "/", "/", "--dev", "/dev", *command]
            print(f"{language + ', bubblewrap':34}{await measure(runs, lambda wrapped=wrapped: bare(*wrapped))}")
        print(f"{language + ', sandbox':34}{await measure(runs, sandboxed)}")
    for language in LANGUAGES:
        began = time.perf_counter()
        results = await run_attacks(sandbox, find_interpreter(language, {}))
        passed = sum(not result.blocked for result in results)
        took = time.perf_counter() - began
        print(f"{language}: {len(results)} attacks, {passed} succeed, {took:.1f} s")


asyncio.run(main())
