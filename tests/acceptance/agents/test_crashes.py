"""The process that does a turn is struck at each of its moments: the turn ends once, with one answer."""

import asyncio
import os
import signal
from collections import Counter
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from holdfast.agents import Event
from holdfast.agents.journal import Journal
from holdfast.core.config import load_config
from holdfast.core.errors import Busy
from holdfast.engine import Engine, open_engine
from tests.acceptance.clerks import (
    ANSWER,
    COMPARE,
    LONG,
    PATIENCE,
    PAY,
    SHORT,
    WHERE,
    WHOLE,
    Clerks,
    ask,
    check,
    gone,
    happened,
    heard,
    survived,
    watched,
)
from tests.acceptance.folders import first_number
from tests.processes import Process, Processes, wait_until_gone

pytestmark = [pytest.mark.acceptance, pytest.mark.req("AGENT-01", "STM-06")]

WAITING = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
EXECUTION = """
select e.status, t.name from tool_executions e left join tool_t t on t.host_id = $1 and t.tool_id = e.tool_id
where e.tenant_id = $1
"""
REMEMBERED = "select scope, count(*) as number from memory where tenant_id = $1 group by scope order by scope"
ASKED = (*WHOLE[:3], "approval", "decision", *WHOLE[3:])


@pytest.mark.parametrize(
    ("moment", "asked", "used"),
    [
        ("claimed", ["1", "2"], 1),
        ("calling", ["1", "1", "2"], 1),  # the one window in which a paid call is made again
        ("begun", ["1", "2"], 1),
        ("working", ["1", "2"], 2),  # the tool is idempotent, and says so
        ("worked", ["1", "2"], 2),
        pytest.param("observed", ["1", "2"], 1, marks=pytest.mark.soak),
        ("streaming", ["1", "2", "2"], 1),  # the same window: nothing of the reply is stored
        pytest.param("answering", ["1", "2", "2"], 1, marks=pytest.mark.soak),
        ("answered", ["1", "2"], 1),
        pytest.param("remembered", ["1", "2"], 1, marks=pytest.mark.soak),
        ("ending", ["1", "2"], 1),
        pytest.param("ended", ["1", "2"], 1, marks=pytest.mark.soak),
        ("committing", ["1", "2"], 1),
    ],
)
async def test_killed_at_any_moment_a_turn_ends_once_and_no_stored_reply_is_paid_for_again(
    engine: Engine, clerks: Clerks, moment: str, asked: list[str], used: int
) -> None:
    await survived(engine, clerks, moment)

    remembered = [tuple(row) for row in await engine.database.all(REMEMBERED)]
    assert (clerks.asked, clerks.used) == (asked, ["track"] * used)
    assert len({line.split()[1] for line in clerks.lines("used")}) == 1, "a repeated call has the key of the first"
    assert remembered == [("session", 2), ("user", 1)], "what was said is remembered once"


async def test_a_stream_that_breaks_off_with_its_process_begins_anew_for_those_who_watch(
    engine: Engine, clerks: Clerks
) -> None:
    dying = await clerks.start("dies", "streaming")
    sent = await ask(engine, WHERE)

    async with watched(engine, sent) as watcher:
        await gone(dying)
        before = await watcher.until("token", text=ANSWER[:20])
        other = await clerks.start("waits", "streaming")
        await watcher.until("token", text=ANSWER[:20], after=before)
        other.send(signal.SIGUSR1)
        await watcher.until("done", "error")

    pieces = [event for event in watcher.seen if event.kind == "token"]
    anew = next(place for place, piece in enumerate(pieces) if piece.reset)
    assert "".join(piece.text for piece in pieces[:anew]).endswith(ANSWER[:22])
    assert "".join(piece.text for piece in pieces[anew:]).startswith(ANSWER[:22])
    assert happened(watcher.seen) == list(WHOLE)


@pytest.mark.req("STM-06")
async def test_the_next_turn_is_done_by_whoever_is_left_and_knows_the_one_before(
    engine: Engine, clerks: Clerks
) -> None:
    dying = await clerks.start("dies", "answered")
    sent = await ask(engine, WHERE)
    await gone(dying)
    await clerks.start()

    events = [event async for event in engine.agents.run("support", message="Hello!", user="ann", session_id="web-1")]

    run = events[-1].run_id
    assert run is not None
    (step,) = await engine.agents.steps(run)
    shown = [message["content"] for message in step.sent["messages"]]
    assert [event.kind for event in events if event.kind != "token"] == ["answer", "done"]
    assert {WHERE, ANSWER} <= set(shown)
    assert (await engine.agents.runs.get(sent.run_id)).state == "done"


@pytest.mark.req("EXEC-05")
async def test_of_two_tools_that_ran_side_by_side_the_one_that_had_ended_does_not_run_again(
    engine: Engine, clerks: Clerks
) -> None:
    dying = await clerks.start("dies", "half")
    sent = await ask(engine, COMPARE)

    async with watched(engine, sent) as watcher:
        assert await gone(dying) == -signal.SIGKILL, dying.stderr
        await clerks.start()
        await watcher.until("done", "error")

    used = Counter(line.split()[1] for line in clerks.lines("used"))
    seen = [event.text for event in watcher.seen if event.kind == "observation"]
    assert sorted(used.values()) in ([1, 2], [1, 1])  # the other had begun, or was about to
    assert seen == ['{"track":"AB-1"}', '{"track":"AB-2"}']
    assert happened(watcher.seen) == [*WHOLE[:3], "action", "observation", *WHOLE[3:]]


@pytest.mark.req("EXEC-05")
async def test_no_tool_begins_for_a_turn_that_another_process_is_just_taking(engine: Engine) -> None:
    await engine.agents.definitions.put("support", instructions="")
    await ask(engine, PAY)
    (run,) = await engine.agents.runs.take(["support"], holder="one", lease=timedelta(seconds=1), most=1)
    journal = Journal(engine.database, run, announce=print, on_node=print)

    async with asyncio.timeout(PATIENCE):
        async with engine.transaction() as tx, engine.postgres.owner() as owner:
            await tx.run("update runs set token = token + 1 where tenant_id = $1 and id = $2", run.id)
            begun = asyncio.create_task(journal.begin_execution(1, [("c1", "pay", {})]))
            while not begun.done() and not await owner.value(WAITING):  # noqa: ASYNC110 - rows tell
                await asyncio.sleep(0.01)
        with pytest.raises(Busy, match="no longer holds the run"):
            await begun


@pytest.mark.req("EXEC-05", "AGENT-05")
@pytest.mark.parametrize(("moment", "before"), [("begun", 0), ("working", 1), ("worked", 1)])
async def test_a_tool_that_must_not_run_twice_runs_again_when_a_person_says_so(
    engine: Engine, clerks: Clerks, moment: str, before: int
) -> None:
    dying = await clerks.start("dies", moment)
    sent = await ask(engine, PAY)

    async with watched(engine, sent) as watcher:
        await gone(dying)
        await clerks.start()
        asked = await watcher.until("approval", "done")
        used, execution = len(clerks.used), await engine.database.one(EXECUTION)
        await decide(engine, asked, approve=True)
        await watcher.until("done", "error")
        await check(engine, sent, watcher, whole=ASKED)

    assert execution is not None
    assert tuple(execution) == ("unknown", "pay")
    assert (asked.tool, asked.arguments, asked.reason) == ("pay", {"bill": "7"}, "unknown")
    assert (used, clerks.used) == (before, ["pay"] * (before + 1))
    assert clerks.asked == ["1", "2"]


@pytest.mark.req("EXEC-05", "AGENT-05")
async def test_a_tool_that_a_person_does_not_run_again_is_an_observation_that_the_model_reads(
    engine: Engine, clerks: Clerks
) -> None:
    dying = await clerks.start("dies", "working")
    sent = await ask(engine, PAY)

    async with watched(engine, sent) as watcher:
        await gone(dying)
        await clerks.start()
        asked = await watcher.until("approval", "done")
        await decide(engine, asked, approve=False, comment="It is paid.")
        seen = await watcher.until("observation", "done")
        await watcher.until("done", "error")
        await check(engine, sent, watcher, whole=ASKED)

    (_, step) = await engine.agents.steps(sent.run_id)
    assert (seen.failed, clerks.used) == (True, ["pay"])
    assert "not known whether" in seen.text
    assert "It is paid." in seen.text
    assert step.sent["messages"][-1]["content"] == seen.text


@pytest.mark.req("EXEC-05", "AGENT-05")
async def test_who_allowed_a_tool_to_run_again_allowed_it_once(engine: Engine, clerks: Clerks) -> None:
    dying = await clerks.start("dies", "working")
    sent = await ask(engine, PAY)

    async with watched(engine, sent) as watcher:
        await gone(dying)
        dying = await clerks.start("dies", "working")
        first = await watcher.until("approval", "done")
        await decide(engine, first, approve=True)
        await gone(dying)
        await clerks.start()
        second = await watcher.until("approval", "done", after=first)
        used = len(clerks.used)
        await decide(engine, second, approve=True)
        await watcher.until("done", "error")
        await check(engine, sent, watcher, whole=(*ASKED[:5], "approval", "decision", *ASKED[5:]))

    assert (used, clerks.used) == (2, ["pay"] * 3)


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize("moment", ["calling", "observed"])
async def test_a_tool_that_surely_did_not_run_or_whose_outcome_is_stored_asks_nobody(
    engine: Engine, clerks: Clerks, moment: str
) -> None:
    dying = await clerks.start("dies", moment)
    sent = await ask(engine, PAY)

    async with watched(engine, sent) as watcher:
        await gone(dying)
        await clerks.start()
        await watcher.until("done", "error", "approval")
        await check(engine, sent, watcher)

    assert clerks.used == ["pay"]


async def test_a_process_that_is_told_to_end_gives_its_turns_to_others_at_once(engine: Engine, clerks: Clerks) -> None:
    ending = await clerks.start("waits", "streaming", lease=LONG)
    sent = await ask(engine, WHERE)

    async with watched(engine, sent) as watcher:
        await heard(ending, "waits")
        await clerks.start()
        ending.send(signal.SIGTERM)
        await watcher.until("done", "error")
        await check(engine, sent, watcher)

    assert (await gone(ending), "Traceback" in ending.stderr) == (0, False), ending.stderr
    assert clerks.asked == ["1", "2", "2"]


@pytest.mark.parametrize(
    ("moment", "meanwhile", "used"),
    [
        ("calling", "calling", 1),
        ("worked", "worked", 2),
        ("answering", "answering", 1),
        ("ending", "ending", 1),
    ],
)
async def test_a_process_that_hung_for_longer_than_its_lease_can_write_nothing_more(
    engine: Engine, clerks: Clerks, moment: str, meanwhile: str, used: int
) -> None:
    hanging = await clerks.start("hangs", moment)
    sent = await ask(engine, WHERE)

    async with watched(engine, sent) as watcher:
        await stopped(hanging)
        other = await clerks.start("waits", meanwhile)
        await heard(other, "waits")
        said = len(await engine.conversations.since(sent.conversation, 0))
        hanging.send(signal.SIGCONT)
        await heard(hanging, "another process has taken over a run")
        run = await engine.agents.runs.get(sent.run_id)
        since = len(await engine.conversations.since(sent.conversation, 0)) - said
        other.send(signal.SIGUSR1)
        await watcher.until("done", "error")
        await check(engine, sent, watcher)

    assert (run.state, since) == ("running", 0)
    assert clerks.used == ["track"] * used


@pytest.mark.req("ENG-02")
@pytest.mark.parametrize("moment", ["streaming", "worked", "answering"])
async def test_the_database_is_killed_in_the_middle_of_a_turn_and_it_ends_once(
    empty: Path, processes: Processes, tmp_path: Path, no_models: None, moment: str
) -> None:
    settings = {"data": empty, "memory.embedding.fetch": False, "bus.lease": 1}
    clerks = Clerks(processes, tmp_path, settings)
    async with open_engine(config=load_config(settings, environ={}, cwd=tmp_path)) as engine:
        clerk = await clerks.start("waits", moment, lease=SHORT)
        sent = await ask(engine, WHERE)

        async with watched(engine, sent) as watcher:
            await heard(clerk, "waits")
            killed = first_number(empty / "postgres" / "postmaster.pid")
            os.kill(killed, signal.SIGKILL)
            wait_until_gone(killed)
            clerk.send(signal.SIGUSR1)
            await watcher.until("done", "error")
            await check(engine, sent, watcher)
        clerk.send(signal.SIGTERM)
        await gone(clerk)

    assert clerks.asked in (["1", "2"], ["1", "2", "2"])
    assert moment == "streaming" or clerks.asked == ["1", "2"], "its reply was stored"
    # It is idempotent: where its outcome could not be stored before the lease was over, it may run again.
    assert clerks.used in (["track"], *([["track", "track"]] if moment == "worked" else []))
    assert "Traceback" not in clerk.stderr


async def decide(engine: Engine, asked: Event, *, approve: bool, comment: str = "") -> None:
    """Decide about a call, as a person does who was asked."""
    assert asked.approval_id is not None, asked
    await engine.agents.decide(asked.approval_id, approve=approve, by="bob", comment=comment)


async def stopped(process: Process) -> None:
    """Wait until it hangs."""
    async with asyncio.timeout(PATIENCE):
        while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.02)
