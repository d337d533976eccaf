"""Processes are killed while many writers speak: no acknowledged node is lost, and no conversation has a gap."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.engine import Engine, open_engine
from tests.acceptance.folders import first_number
from tests.processes import Process, Processes, servers_on, wait_until_gone

PROGRAM = str(Path(__file__).parent / "programs" / "talker.py")
WRITERS = 32
SESSIONS = ("one", "two", "three", "four")
PATIENCE = 60.0  # seconds in which the writers must get on
MORE = 100  # nodes between two kills

Acknowledged = dict[str, dict[int, tuple[str, str]]]  # by session and number: key and content


def lines(ledger: Path) -> list[list[str]]:
    """What was acknowledged; a line that was cut off by the kill was not yet told."""
    text = ledger.read_text() if ledger.exists() else ""
    return [line.split() for line in text.split("\n")[:-1]]


def wait_for_more(ledger: Path, process: Process) -> None:
    """Wait until that many nodes more were acknowledged."""
    wanted, deadline = len(lines(ledger)) + MORE, time.monotonic() + PATIENCE
    while len(lines(ledger)) < wanted:
        assert "Traceback" not in process.stderr, process.stderr
        assert time.monotonic() < deadline, f"nothing was stored for {PATIENCE} s; {process.stderr}"
        time.sleep(0.02)


def kill(process: Process, data: Path, *, server: bool) -> None:
    """Kill the writers' process; with `server` PostgreSQL's first one before it, as if the machine had failed."""
    if server:
        with suppress(FileNotFoundError, ValueError, ProcessLookupError):
            os.kill(first_number(data / "postgres" / "postmaster.pid"), signal.SIGKILL)
    process.kill()


async def check(engine: Engine, acknowledged: Acknowledged) -> None:
    """Compare what is there with what was promised."""
    for session in SESSIONS:
        talk = await engine.conversations.find(session_id=session)
        assert talk is not None
        nodes = await engine.conversations.since(talk.id, 0)
        stored = {node.seq: (node.key, node.content) for node in nodes}
        assert [node.seq for node in nodes] == list(range(1, talk.last_seq + 1)), "no gap"
        assert acknowledged[session].items() <= stored.items(), "nothing that was acknowledged is lost or changed"
        assert len({node.key for node in nodes}) == len(nodes), "nothing is stored twice"
        assert all(node.content == node.key for node in nodes)
        last = [node.state["last"][0] for node in nodes if node.state]
        assert (await engine.state.get(talk.id)).get("last") == (last[-1] if last else None)


@pytest.mark.acceptance
@pytest.mark.req("CONV-03", "CONV-06", "ENG-02")
@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.soak)])
async def test_no_acknowledged_node_is_lost_and_no_number_is_missing_whatever_is_killed(
    kills: int, tmp_path: Path, processes: Processes
) -> None:
    seed = int(os.environ.get("HOLDFAST_TEST_SEED", random.randrange(2**32)))
    sys.stdout.write(f"HOLDFAST_TEST_SEED={seed} repeats the moments of the kills\n")
    dice = random.Random(seed)
    data, ledger = tmp_path / "data", tmp_path / "ledger"

    for number in range(kills):
        process = processes.start(PROGRAM, str(data), str(ledger), str(WRITERS), *SESSIONS)
        wait_for_more(ledger, process)
        await asyncio.sleep(dice.uniform(0, 0.2))
        kill(process, data, server=number % 2 == 1)
    process = processes.start(PROGRAM, str(data), str(ledger), str(WRITERS), *SESSIONS)
    wait_for_more(ledger, process)
    process.send(signal.SIGTERM)
    assert process.wait() == 0, process.stderr

    acknowledged: Acknowledged = defaultdict(dict)
    for session, number, key, content in lines(ledger):
        assert acknowledged[session].setdefault(int(number), (key, content)) == (key, content), "each number once"
    async with open_engine(data=data) as engine:
        await check(engine, acknowledged)
    wait_until_gone(*servers_on(data))
