"""A second message arrives at each moment of a turn, and the process is killed there: each message is acted on once."""

import signal
from collections import Counter
from itertools import pairwise

import pytest

from holdfast.agents import Sent
from holdfast.conversations.turn_claims import Policy
from holdfast.core.text import loads
from holdfast.engine import Engine
from tests.acceptance.clerks import ANSWER, PAY, SHORT, WHERE, Clerks, ask, ended, gone, heard, watched

pytestmark = [pytest.mark.acceptance, pytest.mark.req("AGENT-07", "CONV-07", "EXEC-05")]

PROMPTS = """
select r.number, s.sent from run_step s join runs r on r.tenant_id = $1 and r.id = s.run_id
where s.tenant_id = $1 order by r.number, s.number
"""

BETWEEN = ["claimed", "calling", "observed", "streaming", "answering", "answered", "ending", "ended", "committing"]
OVER = {"ended", "committing"}  # moments in which the turn may be over, and the process may begin the next
INSIDE = {"begun": 0, "working": 1, "worked": 1}  # moments in which `pay` is under way, and how often it ran by then


def at_every_moment(*quick: str) -> pytest.MarkDecorator:
    """Try all moments in the long form of a test, and in the short one these."""
    moments = [pytest.param(each, marks=() if each in quick else pytest.mark.soak) for each in [*BETWEEN, *INSIDE]]
    return pytest.mark.parametrize("moment", moments)


async def say(engine: Engine, message: str, busy: Policy = "enqueue") -> Sent:
    """Say something more to the agent."""
    return await engine.agents.send("support", message, user="ann", session_id="web-1", busy=busy)


async def struck(engine: Engine, clerks: Clerks, moment: str, first: str, *more: str, busy: Policy) -> list[Sent]:
    """Ask, say more when the turn is at a moment, and kill who does it; another one goes on."""
    dying = await clerks.start("waits", moment, lease=SHORT)
    sent = [await ask(engine, first)]
    await heard(dying, "waits")
    if busy == "merge" and moment in OVER:  # what has begun is not merged with
        dying.send(signal.SIGSTOP)
    sent += [await say(engine, message, busy) for message in more]
    dying.send(signal.SIGKILL)
    await gone(dying)
    await clerks.start()
    return sent


async def prompts(engine: Engine) -> dict[int, list[list[tuple[str, str]]]]:
    """What the model was shown, by run and step."""
    shown: dict[int, list[list[tuple[str, str]]]] = {}
    for row in await engine.database.all(PROMPTS):
        messages = [(each["role"], each["content"]) for each in loads(row["sent"])["messages"]]
        shown.setdefault(row["number"], []).append(messages)
    return shown


def check_prompts(shown: dict[int, list[list[tuple[str, str]]]]) -> None:
    """Each step extends the one before."""
    for steps in shown.values():
        for former, later in pairwise(steps):
            assert later[: len(former)] == former


@at_every_moment("observed", "streaming")
async def test_a_payment_that_is_asked_for_at_any_moment_of_another_turn_is_made_once(
    engine: Engine, clerks: Clerks, moment: str
) -> None:
    await struck(engine, clerks, moment, WHERE, PAY, busy="enqueue")
    await ended(engine, 2)

    shown = await prompts(engine)
    first, second = ([content for step in steps for _, content in step] for steps in shown.values())
    assert Counter(clerks.used)["pay"] == 1
    assert PAY not in first
    assert second.index(WHERE) < second.index(ANSWER) < second.index(PAY)
    check_prompts(shown)


@at_every_moment("working")
async def test_each_of_two_payments_is_made_once_or_a_person_is_asked(
    engine: Engine, clerks: Clerks, moment: str
) -> None:
    sent = await struck(engine, clerks, moment, PAY, PAY, busy="enqueue")
    if moment in INSIDE:
        async with watched(engine, sent[0]) as watcher:
            asked = await watcher.until("approval")
            assert asked.approval_id is not None
            assert (asked.reason, clerks.used) == ("unknown", ["pay"] * INSIDE[moment])
            await say(engine, PAY)  # a third one, while a person is asked
            await engine.agents.decide(asked.approval_id, approve=False, by="bob")
    await ended(engine, len(sent))

    keys = [line.split()[1] for line in clerks.lines("used")]
    wanted = INSIDE[moment] + 2 if moment in INSIDE else 2
    assert len(keys) == len(set(keys)) == wanted
    check_prompts(await prompts(engine))


@at_every_moment("calling")
async def test_merged_messages_are_answered_once_whatever_is_killed(
    engine: Engine, clerks: Clerks, moment: str
) -> None:
    sent = await struck(engine, clerks, moment, WHERE, "Thank you.", PAY, busy="merge")
    await ended(engine, 2)

    shown = await prompts(engine)
    run = await engine.agents.runs.get(sent[1].run_id)
    assert (sent[1].run_id, run.state) == (sent[2].run_id, "done")
    assert Counter(clerks.used)["pay"] == 1
    assert all(
        steps[0][-1] == ("user", text)
        for steps, text in zip(shown.values(), [WHERE, f"Thank you.\n\n{PAY}"], strict=True)
    )
    check_prompts(shown)


async def test_messages_that_nobody_has_begun_to_answer_are_merged(engine: Engine, clerks: Clerks) -> None:
    await engine.agents.definitions.put("support", instructions="")
    sent = [await say(engine, message, "merge") for message in ("Good day.", PAY)]
    await clerks.start()
    await ended(engine, 1)

    assert len({each.run_id for each in sent}) == 1
    assert clerks.used == ["pay"]
