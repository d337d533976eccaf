"""Producers, consumers and PostgreSQL are killed under load: what was acknowledged is processed, once and in order."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.core.config import Config, load_config
from holdfast.core.setting_sources import environment_name
from holdfast.engine import Engine, open_engine
from tests.acceptance.folders import first_number
from tests.conformance.consumers import Effects
from tests.conformance.drivers import DRIVERS, settings_of
from tests.processes import Process, Processes, servers_on, wait_until_gone

PROGRAMS = Path(__file__).parent / "programs"
TOPIC, GROUP = "orders", "billing"
PRODUCERS, WRITERS, CONSUMERS = 2, 8, 3
PARTITIONS = 6
PATIENCE = 120.0  # seconds in which things must get on
MORE = 150  # records between two kills

pytestmark = [pytest.mark.acceptance, pytest.mark.parametrize("driver", DRIVERS)]


@pytest.fixture
def settings(driver: str, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """Settings for all: the dead are missed after a second, and no record is given up because of those who died."""
    bus = {"lease": 1, "partitions": PARTITIONS, "max_attempts": 1000, **settings_of(driver, request)}
    return {"data": tmp_path / "data", **{f"bus.{name}": value for name, value in bus.items()}}


@pytest.fixture
def config(settings: dict[str, object], tmp_path: Path) -> Config:
    """The settings, for an engine of the test."""
    return load_config(settings, environ={}, cwd=tmp_path)


@pytest.fixture
def stage(settings: dict[str, object], tmp_path: Path, processes: Processes) -> "Stage":
    """An empty stage."""
    environment = {environment_name(key): str(value) for key, value in settings.items()}
    return Stage(tmp_path / "data", tmp_path / "ledger", processes, environment)


class Stage:
    """The programs at work on a data folder."""

    def __init__(self, data: Path, ledger: Path, processes: Processes, environment: Mapping[str, str]) -> None:
        self._data = data
        self._ledger = ledger
        self._processes = processes
        self._environment = environment
        self.running: dict[str, Process] = {}

    def start(self, role: str) -> None:
        """Start a program: `producer 0`, `consumer 1`."""
        if role.startswith("producer"):
            self.run(role, "producer.py", str(self._ledger), TOPIC, str(WRITERS))
        else:
            self.run(role, "consumer.py", TOPIC, GROUP)

    def run(self, role: str, program: str, *arguments: str) -> Process:
        """Run a program."""
        process = self._processes.start(str(PROGRAMS / program), *arguments, environment=self._environment)
        self.running[role] = process
        return process

    def kill(self, role: str) -> None:
        """Kill a program and start it again, or PostgreSQL, which those who need it start again."""
        if role == "postgres":
            with suppress(FileNotFoundError, ValueError, ProcessLookupError):
                os.kill(first_number(self._data / "postgres" / "postmaster.pid"), signal.SIGKILL)
            return
        self.running[role].kill()
        self.start(role)

    def end(self, role: str) -> None:
        """End all programs of a role: in good order, unless one has just been started."""
        ending = [process for name, process in self.running.items() if name.startswith(role)]
        for process in ending:
            process.send(signal.SIGTERM)
        for process in ending:
            assert process.wait() in (0, -signal.SIGTERM), process.stderr

    def acknowledged(self) -> list[list[str]]:
        """What producers were told is stored; a line that was cut off by the kill was not told."""
        text = self._ledger.read_text() if self._ledger.exists() else ""
        return [line.split() for line in text.split("\n")[:-1] if len(line.split()) == 5]

    def wait_for_more(self) -> None:
        """Wait until that many records more were acknowledged."""
        wanted, deadline = len(self.acknowledged()) + MORE, time.monotonic() + PATIENCE
        while len(self.acknowledged()) < wanted:
            for name, process in self.running.items():
                assert "Traceback" not in process.stderr, f"{name}: {process.stderr}"
            assert time.monotonic() < deadline, f"nothing was stored for {PATIENCE} s; {self.told()}"
            time.sleep(0.02)

    def told(self) -> str:
        """What the programs complained about."""
        return "\n".join(f"{name}: {process.stderr[-2000:]}" for name, process in self.running.items())


async def drained(engine: Engine, stage: Stage) -> None:
    """Wait until the group has read everything."""
    deadline = time.monotonic() + PATIENCE
    while True:
        lags = await engine.log.lag(GROUP)
        if lags and not any(lag.lag for lag in lags):
            return
        assert time.monotonic() < deadline, f"{lags}\n{stage.told()}"
        await asyncio.sleep(0.1)


async def check(engine: Engine, acknowledged: list[list[str]]) -> None:
    """Compare what was done with what was promised."""
    rows = await Effects(engine).all()
    places = Counter((row["partition"], row["offset"]) for row in rows)
    done = {(row["key"], row["value"], row["partition"], row["offset"]) for row in rows}
    promised = {(key, int(n), int(partition), int(offset)) for key, n, partition, offset, _ in acknowledged}
    stored = [(r.partition, r.offset) async for r in engine.log.read(TOPIC)]

    assert promised <= done, f"lost: {sorted(promised - done)[:10]}"
    assert max(places.values()) == 1, "an effect happened twice"
    assert sorted(places) == sorted(stored), "everything that is stored was processed"
    assert all(row["value"] >= 0 for row in rows), "nothing of a transaction that was rolled back"
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_key[row["key"]].append(row["value"])
    assert all(numbers == sorted(numbers) for numbers in by_key.values()), "in order per key"
    for partition in range(PARTITIONS):
        offsets = [offset for number, offset in stored if number == partition]
        assert offsets == list(range(len(offsets))), "no gap"
    assert await engine.dead_letters.list() == []


@pytest.mark.req("BUS-01", "BUS-02", "BUS-03", "ENG-02")
@pytest.mark.parametrize("kills", [8, pytest.param(80, marks=pytest.mark.soak(minutes=4))])
async def test_every_acknowledged_record_is_processed_once_and_in_order_whatever_is_killed(
    kills: int, config: Config, stage: Stage
) -> None:
    seed = int(os.environ.get("HOLDFAST_TEST_SEED", random.randrange(2**32)))
    sys.stdout.write(f"HOLDFAST_TEST_SEED={seed} repeats the choice of the kills\n")
    dice = random.Random(seed)
    async with open_engine(config=config) as engine:
        await engine.log.create(TOPIC)
        await Effects.create(engine)
    for role in [f"producer {n}" for n in range(PRODUCERS)] + [f"consumer {n}" for n in range(CONSUMERS)]:
        stage.start(role)

    victims = ["postgres", *stage.running] * (kills // (PRODUCERS + CONSUMERS + 1) + 1)
    for role in dice.sample(victims, kills):
        stage.wait_for_more()
        await asyncio.sleep(dice.uniform(0, 0.3))
        stage.kill(role)
    stage.wait_for_more()
    stage.end("producer")

    async with open_engine(config=config) as engine:
        await drained(engine, stage)
        stage.end("consumer")
        await check(engine, stage.acknowledged())
    wait_until_gone(*servers_on(config.data))


@pytest.mark.req("BUS-01", "BUS-03")
async def test_a_consumer_that_was_taken_for_dead_cannot_commit(config: Config, stage: Stage) -> None:
    async with open_engine(config=config) as engine:
        await engine.log.create(TOPIC, partitions=1)
        await Effects.create(engine)
        sleeper = stage.run("sleeper", "consumer.py", TOPIC, GROUP, "hold")
        await engine.log.publish(TOPIC, value=1)
        await asyncio.to_thread(sleeper.wait_for, "holds 1")

        sleeper.send(signal.SIGSTOP)
        stage.start("consumer")
        await drained(engine, stage)
        sleeper.send(signal.SIGCONT)
        sleeper.send(signal.SIGUSR1)
        await asyncio.to_thread(sleeper.wait_for, "busy: this consumer no longer owns partition 0 of orders")

        assert await Effects(engine).values() == [1], "its effect was rolled back"
        stage.end("")
    wait_until_gone(*servers_on(config.data))
