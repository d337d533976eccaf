"""Whatever producers, consumers and operators do, in any order: nothing is lost, and no effect happens twice."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from holdfast.bus import DeadLetter, Record
from holdfast.core.config import Config
from holdfast.core.errors import Busy
from holdfast.engine import Engine, open_engine
from holdfast.postgres.database import Transaction
from tests.conformance.consumers import PATIENCE, Consumer, Effects, while_working

Result = TypeVar("Result")

GROUP = "billing"
PARTITIONS = 3
MOST_CONSUMERS = 3
A_MOMENT = 0.2  # seconds in which a consumer gets what is there for it, if anything is

picks = st.integers(0, 999)
keys = st.sampled_from(["a", "b", "c", "d", "e"])


class Machine(RuleBasedStateMachine):
    """A topic and its group; the model is what was published, and what is poison."""

    def __init__(self, runner: asyncio.Runner, config: Config, engine: Engine, effects: Effects) -> None:
        super().__init__()
        self.runner = runner
        self.config = config
        self.engine = engine
        self.effects = effects
        self.topic = f"t-{uuid4()}"
        self.consumers: list[Consumer] = []
        self.published: dict[int, Record] = {}  # by value, in their order
        self.delivered: set[int] = set()
        self.poison: set[int] = set()
        self.poisoned: set[int] = set()  # at any time
        self.redriven: set[int] = set()  # at any time
        self.dropped: set[int] = set()
        self.crashes = 0
        self.next = 0

    # How it is done

    def run(self, work: Awaitable[Result]) -> Result:
        async def awaited() -> Result:
            async with asyncio.timeout(2 * PATIENCE):
                return await work

        return self.runner.run(awaited())

    def pick(self, number: int) -> Consumer:
        return self.consumers[number % len(self.consumers)]

    async def process(self, consumer: Consumer, record: Record, *, by_hand: bool) -> None:
        """The effect, with the position; an exception for what is poison."""
        self.delivered.add(record.value)
        if by_hand and record.value not in self.poison:
            with suppress(Busy):  # it was slow, and the partition is another's
                async with consumer.engine.transaction() as tx:
                    await self.effects.add(tx, record)
                    await consumer.records.commit(record, tx=tx)
            return
        async with consumer.records.handle(record) as tx:
            await self.effects.add(tx, record)
            if record.value in self.poison:
                raise ValueError("poison")

    async def letters(self) -> list[DeadLetter]:
        return await self.engine.dead_letters.list(topic=self.topic, limit=1000)

    # What is done

    @initialize()
    def begin(self) -> None:
        self.run(self.engine.log.create(self.topic, partitions=PARTITIONS))

    @rule(given=st.lists(keys, min_size=1, max_size=6), way=st.sampled_from(["alone", "together", "rolled back"]))
    def produce(self, given: list[str], way: str) -> None:
        numbers = range(self.next, self.next + len(given))
        self.next += len(given)

        async def write(tx: Transaction | None) -> list[Record]:
            return [
                await self.engine.log.publish(self.topic, key=key, value=number, tx=tx)
                for key, number in zip(given, numbers, strict=True)
            ]

        async def produced() -> list[Record]:
            if way == "alone":
                return await write(None)
            async with self.engine.transaction() as tx:
                published = await write(tx)
                if way == "rolled back":
                    raise KeyError
                return published

        if way == "rolled back":
            with pytest.raises(KeyError):
                self.run(produced())
        else:
            self.published.update((record.value, record) for record in self.run(produced()))

    @precondition(lambda self: len(self.consumers) < MOST_CONSUMERS)
    @rule()
    def join(self) -> None:
        self.consumers.append(self.run(Consumer.join(self.config, self.topic, group=GROUP)))

    @precondition(lambda self: self.consumers)
    @rule(who=picks, crash=st.booleans(), most=st.integers(0, 5))
    def go(self, who: int, crash: bool, most: int) -> None:
        """Leave or die, perhaps with records in hand that are not committed."""
        consumer = self.pick(who)
        self.consumers.remove(consumer)
        self.crashes += crash

        async def gone() -> None:
            if most:
                for record in await self.at_hand(consumer, most):
                    self.delivered.add(record.value)
            await (consumer.crash() if crash else consumer.leave())

        self.run(gone())

    async def at_hand(self, consumer: Consumer, most: int) -> list[Record]:
        try:
            async with asyncio.timeout(A_MOMENT):
                return await consumer.records.batch(most)
        except TimeoutError:
            return []

    @precondition(lambda self: self.consumers)
    @rule(who=picks, most=st.integers(1, 8), rounds=st.integers(1, 3), by_hand=st.booleans())
    def consume(self, who: int, most: int, rounds: int, by_hand: bool) -> None:
        consumer = self.pick(who)

        async def consumed() -> None:
            for _ in range(rounds):
                records = await self.at_hand(consumer, most)
                if not records:
                    break
                for record in records:
                    if by_hand and not await self.is_next(record):
                        continue  # one before it failed: it comes again
                    await self.process(consumer, record, by_hand=by_hand)

        self.run(consumed())

    async def is_next(self, record: Record) -> bool:
        """Whether nothing before the record is undone; only `handle` finds out by itself."""
        if record.dead_letter is not None:
            return True
        lags = await self.engine.log.lag(GROUP)
        return any(
            (lag.topic, lag.partition, lag.position) == (record.topic, record.partition, record.offset)
            and lag.owner is not None
            for lag in lags
        )

    @precondition(lambda self: self.published)
    @rule(which=picks)
    def poison_one(self, which: int) -> None:
        value = list(self.published)[which % len(self.published)]
        self.poison.add(value)
        self.poisoned.add(value)

    @precondition(lambda self: self.poisoned)
    @rule(which=picks, act=st.sampled_from(["heal and redrive", "redrive", "drop"]))
    def settle(self, which: int, act: str) -> None:
        dead = [letter for letter in self.run(self.letters()) if letter.state == "dead"]
        if not dead:
            return
        letter = dead[which % len(dead)]
        if act == "drop":
            self.run(self.engine.dead_letters.drop(letter.id))
            self.dropped.add(letter.value)
            return
        if act == "heal and redrive":
            self.poison.discard(letter.value)
        self.redriven.add(letter.value)
        self.run(self.engine.dead_letters.redrive(letter.id))

    @rule(partition=st.none() | st.integers(0, PARTITIONS - 1), offset=st.integers(0, 5))
    def replay(self, partition: int | None, offset: int) -> None:
        """Read what is there; it is what was published."""

        async def read() -> list[Record]:
            return [r async for r in self.engine.log.read(self.topic, partition=partition, offset=offset)]

        found = [(record.partition, record.offset, record.key, record.value, record.id) for record in self.run(read())]

        expected = sorted(
            (record.partition, record.offset, record.key, record.value, record.id)
            for record in self.published.values()
            if record.offset >= offset and partition in (None, record.partition)
        )
        assert found == expected

    # What must be so in the end

    def teardown(self) -> None:
        try:
            self.run(self.drained())
            self.run(self.checked())
        finally:
            for consumer in self.consumers:
                self.run(consumer.leave())

    async def drained(self) -> None:
        """One consumer does what is left."""
        for consumer in self.consumers[1:]:
            await consumer.leave()
        del self.consumers[1:]
        if not self.consumers:
            self.consumers.append(await Consumer.join(self.config, self.topic, group=GROUP))
        last = self.consumers[0]

        async def work() -> None:
            async for record in last.records:
                await self.process(last, record, by_hand=False)

        async def all_done() -> bool:
            lags = [lag for lag in await self.engine.log.lag(GROUP) if lag.topic == self.topic]
            redriven = any(letter.state == "redriven" for letter in await self.letters())
            return sum(lag.position for lag in lags) >= len(self.published) and not redriven

        await while_working(work(), all_done)

    async def checked(self) -> None:
        rows = [row for row in await self.effects.all() if row["topic"] == self.topic]
        done = Counter[int](row["value"] for row in rows)
        dead = {letter.value: letter for letter in await self.letters()}

        assert max(done.values(), default=1) == 1, "an effect happened twice"
        assert set(done) | set(dead) | self.dropped == set(self.published), (
            "everything was dealt with, and nothing else"
        )
        assert not set(done) & (set(dead) | self.dropped), "what is dead was not done"
        assert set(self.published) - self.delivered <= set(dead) | self.dropped
        assert all(
            value in self.poisoned or (self.crashes and "stopped responding" in letter.error)
            for value, letter in dead.items()
        )
        by_key: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            if row["value"] not in self.redriven:
                by_key[row["key"]].append(row["value"])
        assert all(values == sorted(values) for values in by_key.values()), "in order per key"
        offsets: defaultdict[int, list[int]] = defaultdict(list)
        for record in sorted(self.published.values(), key=lambda record: record.offset):
            offsets[record.partition].append(record.offset)
        assert all(found == list(range(len(found))) for found in offsets.values()), "no gap"


@pytest.mark.req("BUS-01", "BUS-02", "BUS-03", "BUS-04")
@pytest.mark.parametrize(("examples", "steps"), [(15, 30), pytest.param(75, 60, marks=pytest.mark.soak(minutes=6))])
@pytest.mark.parametrize("bus", [{"max_attempts": 3, "batch": 10}], ids=["three attempts"])
def test_the_log_keeps_its_promises_whatever_is_done(config: Config, examples: int, steps: int) -> None:
    with asyncio.Runner() as runner:
        opening = open_engine(config=config)
        engine = runner.run(opening.__aenter__())  # pyright: ignore[reportUnknownMemberType]
        try:
            effects = runner.run(Effects.create(engine))
            run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
                partial(Machine, runner, config, engine, effects),  # pyright: ignore[reportArgumentType]
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    suppress_health_check=[HealthCheck.too_slow],
                    print_blob=True,
                ),
            )
        finally:
            runner.run(opening.__aexit__(None, None, None))
