import asyncio
from datetime import timedelta

import pytest

from holdfast.conversations import Conversation, Conversations, HeldTurn, NodeInput, TurnClaims
from holdfast.conversations import turn_claims as turns_module
from holdfast.conversations.turn_claims import POLICIES, Policy
from holdfast.core.errors import Busy, InvalidInput, TimedOut
from holdfast.engine import Engine
from tests.clock import Clock

pytestmark = pytest.mark.req("CONV-07")

USER = "text:user:ann"
LEASE = timedelta(seconds=30)


class Watched:
    """A turn that another task takes, waits for, and gives back when told."""

    def __init__(self, turns: TurnClaims, conversation: Conversation, busy: Policy) -> None:
        self.held = asyncio.Event()
        self.enough = asyncio.Event()
        self.turn: HeldTurn | None = None
        self.task = asyncio.create_task(self._take(turns, conversation, busy))

    async def _take(self, turns: TurnClaims, conversation: Conversation, busy: Policy) -> None:
        async with turns.take(conversation.id, busy=busy) as self.turn:
            self.held.set()
            await self.enough.wait()


async def claims(engine: Engine, count: int) -> None:
    """Wait until this many hold or wait for a conversation."""
    async with asyncio.timeout(10):
        while await engine.database.value("select count(*) from turn_claim where tenant_id = $1") != count:
            pass


@pytest.fixture
def only_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by themselves whether a conversation is free."""
    monkeypatch.setattr(turns_module, "POLL", 3600.0)


async def test_a_turn_holds_a_conversation_until_it_ends(
    conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    async with turns.take(talk.id, holder="me") as turn:
        node = await conversations.append(talk.id, "hi", context=USER, turn=turn)
        with pytest.raises(Busy, match="me holds it") as refused:
            await turns.claim(talk.id)

    assert (turn.conversation, node.seq, refused.value.details) == (talk.id, 1, {"holder": "me"})
    async with turns.take(talk.id) as again:
        assert again.number > turn.number


async def test_turns_of_different_conversations_do_not_meet(
    conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    other = await conversations.create()

    async with turns.take(talk.id) as one, turns.take(other.id) as two:
        pass

    assert (one.conversation, two.conversation) == (talk.id, other.id)


@pytest.mark.parametrize("how", ["exception", "cancel"])
async def test_a_turn_that_fails_or_is_cancelled_frees_the_conversation(
    turns: TurnClaims, talk: Conversation, how: str
) -> None:
    held = asyncio.Event()

    async def work() -> None:
        async with turns.take(talk.id):
            held.set()
            if how == "exception":
                raise ZeroDivisionError
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    async with asyncio.timeout(10):
        await held.wait()
    if how == "cancel":
        task.cancel()
    with pytest.raises((ZeroDivisionError, asyncio.CancelledError)):
        await task

    assert (await turns.claim(talk.id)).held


@pytest.mark.usefixtures("only_woken")
async def test_those_who_wait_are_woken_and_come_in_their_order(
    engine: Engine, second: Engine, talk: Conversation
) -> None:
    order: list[int] = []

    async def work(number: int) -> None:
        async with (engine, second)[number % 2].turns.take(talk.id, busy="enqueue"):
            order.append(number)

    async with engine.turns.take(talk.id):
        waiting: list[asyncio.Task[None]] = []
        for number in range(5):
            waiting.append(asyncio.create_task(work(number)))
            await claims(engine, number + 2)

    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)
    assert order == [0, 1, 2, 3, 4]
    await claims(engine, 0)


async def test_one_that_stops_waiting_leaves_its_place(engine: Engine, turns: TurnClaims, talk: Conversation) -> None:
    async with turns.take(talk.id):
        with pytest.raises(TimedOut, match="did not become free"):
            async with turns.take(talk.id, busy="enqueue", wait=0.05):
                pass
        await claims(engine, 1)
        other = Watched(turns, talk, "enqueue")
        await claims(engine, 2)
        other.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other.task
        await claims(engine, 1)


@pytest.mark.usefixtures("only_woken")
async def test_a_turn_that_is_interrupted_is_told_at_once_and_may_come_to_an_end(
    engine: Engine, second: Engine, talk: Conversation
) -> None:
    async with asyncio.timeout(10), engine.turns.take(talk.id) as turn:
        other = Watched(second.turns, talk, "interrupt")
        await turn.interrupted.wait()
        await engine.conversations.append(talk.id, "to an end", context=USER, turn=turn)
        assert not other.held.is_set()

    async with asyncio.timeout(10):
        await other.held.wait()
        other.enough.set()
        await other.task
    assert other.turn is not None
    assert not other.turn.interrupted.is_set()


async def test_a_conversation_that_nobody_holds_is_taken_by_every_policy(turns: TurnClaims, talk: Conversation) -> None:
    for policy in POLICIES:
        async with turns.take(talk.id, busy=policy) as turn:
            assert turn.conversation == talk.id


async def test_a_fork_is_worked_on_while_the_conversation_is_held(
    conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    await conversations.append(talk.id, "shared", context=USER)

    async with turns.take(talk.id) as held, turns.take(talk.id, busy="fork") as forked:
        await conversations.append(forked.conversation, "theirs", context=USER, turn=forked)
        await conversations.append(talk.id, "ours", context=USER, turn=held)

    assert (await conversations.get(forked.conversation)).forked_from == talk.id
    assert [node.content for node in await conversations.last(forked.conversation, 9)] == ["shared", "theirs"]
    assert [node.content for node in await conversations.last(talk.id, 9)] == ["shared", "ours"]


async def test_a_turn_writes_to_its_own_conversation_alone(
    conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    async with turns.take(talk.id), turns.take(talk.id, busy="fork") as forked:
        with pytest.raises(InvalidInput, match="belongs to another conversation"):
            await conversations.append(talk.id, "astray", context=USER, turn=forked)
        with pytest.raises(InvalidInput, match="belongs to another conversation"):
            await conversations.append_all(talk.id, [NodeInput(content="astray", context=USER)], turn=forked)

    assert await conversations.last(talk.id, 9) == []


async def test_one_that_waits_writes_nothing_yet(
    conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    first = await turns.claim(talk.id)
    waiting = await turns.claim(talk.id, busy="enqueue")
    turn = HeldTurn(talk.id, waiting.number)
    drafts = [NodeInput(content="early", context=USER)]

    with pytest.raises(Busy, match="does not hold"):
        await conversations.append(talk.id, "early", context=USER, turn=turn)
    with pytest.raises(Busy, match="does not hold"):
        await conversations.append_all(talk.id, drafts, turn=turn)
    await turns.release(talk.id, first.number)

    assert (await turns.renew(talk.id, waiting.number)).held
    assert (await conversations.append(talk.id, "now", context=USER, turn=turn)).seq == 1
    assert (await conversations.append_all(talk.id, drafts, turn=turn))[0].seq == 2


async def test_a_crashed_turn_frees_the_conversation_when_its_lease_runs_out(
    conversations: Conversations, turns: TurnClaims, talk: Conversation, clock: Clock
) -> None:
    crashed = await turns.claim(talk.id, holder="crashed")
    waiting = await turns.claim(talk.id, busy="enqueue", lease=2 * LEASE)
    drafts = [NodeInput(content="late", context=USER)]
    await clock.advance(LEASE)

    assert (await turns.renew(talk.id, waiting.number, lease=2 * LEASE)).held
    late = HeldTurn(talk.id, crashed.number)
    for work in (
        conversations.append(talk.id, "late", context=USER, turn=late),
        conversations.append_all(talk.id, drafts, turn=late),
        turns.renew(talk.id, crashed.number),
    ):
        with pytest.raises(Busy, match="does not hold"):
            await work
    await turns.release(talk.id, crashed.number)

    node = await conversations.append(talk.id, "mine", context=USER, turn=HeldTurn(talk.id, waiting.number))
    assert await conversations.since(talk.id, 0) == [node]


@pytest.mark.parametrize("how", ["released", "ran out"])
async def test_a_turn_that_is_over_writes_nothing_more_even_if_nobody_else_came(
    conversations: Conversations, turns: TurnClaims, talk: Conversation, clock: Clock, how: str
) -> None:
    claim = await turns.claim(talk.id)
    if how == "released":
        await turns.release(talk.id, claim.number)
    else:
        await clock.advance(LEASE)

    with pytest.raises(Busy, match="does not hold"):
        await conversations.append(talk.id, "late", context=USER, turn=HeldTurn(talk.id, claim.number))
    with pytest.raises(Busy, match="does not hold"):
        await conversations.append_all(
            talk.id, [NodeInput(content="late", context=USER)], turn=HeldTurn(talk.id, claim.number)
        )

    assert await conversations.last(talk.id, 9) == []


async def test_a_claim_that_ran_out_is_no_hindrance(turns: TurnClaims, talk: Conversation, clock: Clock) -> None:
    await turns.claim(talk.id)
    await clock.advance(LEASE)

    assert (await turns.claim(talk.id)).held


async def test_what_a_lapsed_turn_had_stored_is_found_by_its_key(
    conversations: Conversations, turns: TurnClaims, talk: Conversation, clock: Clock
) -> None:
    turn = HeldTurn(talk.id, (await turns.claim(talk.id)).number)
    first = await conversations.append(talk.id, "hi", context=USER, key="k", turn=turn)
    await clock.advance(LEASE)

    assert await conversations.append(talk.id, "hi", context=USER, key="k", turn=turn) == first


async def test_a_long_turn_keeps_its_lease(engine: Engine, turns: TurnClaims, talk: Conversation) -> None:
    async def leased() -> object:
        return await engine.database.value("select leased_until from turn_claim where tenant_id = $1")

    async with turns.take(talk.id, lease=timedelta(seconds=0.9)) as turn, asyncio.timeout(20):
        first = await leased()
        while await leased() == first:
            pass

        assert not turn.interrupted.is_set()


@pytest.mark.usefixtures("only_woken")
async def test_a_turn_that_lost_its_lease_is_told(engine: Engine, turns: TurnClaims, talk: Conversation) -> None:
    async with asyncio.timeout(10), turns.take(talk.id, lease=timedelta(seconds=0.3)) as turn:
        await turns.release(talk.id, turn.number)

        await turn.interrupted.wait()


@pytest.mark.parametrize("lease", [timedelta(), timedelta(seconds=-1)])
async def test_a_lease_that_is_over_before_it_begins_is_refused(
    turns: TurnClaims, talk: Conversation, lease: timedelta
) -> None:
    with pytest.raises(InvalidInput, match="lease"):
        await turns.claim(talk.id, lease=lease)


async def test_an_unknown_policy_is_refused(turns: TurnClaims, talk: Conversation) -> None:
    with pytest.raises(InvalidInput, match="reject, enqueue, merge, interrupt, fork"):
        await turns.claim(talk.id, busy="hope")  # pyright: ignore[reportArgumentType]


async def test_claiming_changes_nothing_that_others_expect(
    conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    claim = await turns.claim(talk.id)
    await turns.release(talk.id, claim.number)
    await turns.release(talk.id, claim.number)

    assert await conversations.get(talk.id) == talk


async def test_what_a_dead_turn_tries_to_append_is_refused_in_a_transaction_of_its_time_too(
    engine: Engine, conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    dead = await turns.claim(talk.id, lease=timedelta(seconds=0.3))
    next_one = await turns.claim(talk.id, busy="enqueue", lease=LEASE)

    async with engine.transaction() as tx:
        await tx.now()  # for this transaction it stays the time when the lease was alive
        async with asyncio.timeout(10):
            while not (await turns.renew(talk.id, next_one.number)).held:
                pass
        await conversations.append(talk.id, "by the next", context=USER, turn=HeldTurn(talk.id, next_one.number))

        with pytest.raises(Busy, match="does not hold"):
            await conversations.append(talk.id, "too late", context=USER, turn=HeldTurn(talk.id, dead.number), tx=tx)

    assert [node.content for node in await conversations.last(talk.id, 9)] == ["by the next"]


async def test_wake_ups_for_others_write_nothing(
    engine: Engine, conversations: Conversations, turns: TurnClaims, talk: Conversation
) -> None:
    others = await conversations.create()
    leases = "select leased_until from turn_claim where tenant_id = $1 and root = $2"

    async with turns.take(talk.id) as turn:
        before = await engine.database.value(leases, talk.id)
        async with turns.take(others.id):
            waiting = asyncio.create_task(_take_and_give(turns, others))
            await claims(engine, 3)
        await waiting
        after = await engine.database.value(leases, talk.id)

    assert before == after
    assert not turn.interrupted.is_set()


async def _take_and_give(turns: TurnClaims, talk: Conversation) -> None:
    async with turns.take(talk.id, busy="enqueue"):
        pass
