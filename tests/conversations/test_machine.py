"""Whatever is done to conversations by two writers, in any order, they are as the model says."""

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from holdfast.conversations import DELETED, Node, NodeInput
from holdfast.core.config import Config
from holdfast.core.errors import Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.engine import Engine, open_engine
from tests.conversations.model import Changes, ModelNode, ModelTalk, Values

Result = TypeVar("Result")

USER = "text:user:ann"
MOST_TALKS = 4
PARENTS = (None, 1, 2, None, 4, 1, 6, None)  # of the nodes that there are from the start

picks = st.integers(0, 999)
writers = st.integers(0, 1)
texts = st.text(max_size=8)
keys = st.none() | st.sampled_from(["k1", "k2", "k3"])
offsets = st.sampled_from([0, 0, 0, 0, 1, -1])  # of the expected version from the current one
changes_of_state = st.dictionaries(
    st.sampled_from(["a", "b", "long key", "user:a", "user:b"]),
    st.none() | st.integers(0, 9) | texts | st.just(DELETED),
    min_size=1,
    max_size=3,
)


class Machine(RuleBasedStateMachine):
    """Two engines and the model, side by side."""

    def __init__(self, runner: asyncio.Runner, engines: tuple[Engine, Engine]) -> None:
        super().__init__()
        self.runner = runner
        self.engines = engines
        self.app = f"app {uuid4()}"
        self.users = {"ann": Values(), "bob": Values()}
        self.talks: list[ModelTalk] = []

    # How it is done

    def run(self, work: Awaitable[Result]) -> Result:
        async def awaited() -> Result:
            return await work

        return self.runner.run(awaited())

    def refused(self, work: Awaitable[object], kind: type[HoldfastError]) -> HoldfastError:
        with pytest.raises(kind) as refused:
            self.run(work)
        return refused.value

    def talk(self, pick: int) -> ModelTalk:
        return self.talks[pick % len(self.talks)]

    @staticmethod
    def node(talk: ModelTalk, pick: int) -> ModelNode:
        return talk.nodes[pick % len(talk.nodes)]

    def check(self, *talks: ModelTalk) -> None:
        """Read them again, with either engine, and compare."""
        for number, talk in enumerate(talks):
            self.run(self._check(self.engines[number % 2], talk))

    async def _check(self, engine: Engine, talk: ModelTalk) -> None:
        found = await engine.conversations.get(talk.id)
        nodes = await engine.conversations.since(talk.id, -1)
        tree = await engine.conversations.subtree(talk.id)
        state = await engine.state.versions(talk.id)

        assert (found.revision, found.last_seq) == (talk.revision, len(talk.nodes) - 1)
        assert [seen(node) for node in nodes] == [expected(node) for node in talk.nodes]
        assert [node.id for node in tree] == [node.id for node in talk.below(talk.nodes[0])]
        assert {key: (held.value, held.version) for key, held in state.items()} == {
            key: (value, values.versions[key])
            for values in (talk.own, talk.users)
            for key, value in values.values.items()
        }

    # What can be done

    @initialize()
    def begin(self) -> None:
        for user in ("ann", "bob"):
            self.create(user, 0)
        for number, parent in enumerate(PARENTS, 1):
            self.append(0, number % 2, f"{number}", None, parent, None, None, None)

    @precondition(lambda self: len(self.talks) < MOST_TALKS)
    @rule(user=st.sampled_from(["ann", "bob"]), by=writers)
    def create(self, user: str, by: int) -> None:
        made = self.run(self.engines[by].conversations.create(app=self.app, user=user))
        self.talks.append(ModelTalk.begun(made.id, self.users[user]))

    @rule(
        pick=picks, by=writers, content=texts, key=keys, under=st.none() | picks, expect=st.none() | offsets,
        state=st.none() | changes_of_state, payload=st.none() | st.just({"role": "user"}),
    )  # fmt: skip
    def append(
        self, pick: int, by: int, content: str, key: str | None, under: int | None, expect: int | None,
        state: Changes | None, payload: dict[str, Any] | None,
    ) -> None:  # fmt: skip
        talk = self.talk(pick)
        parent = None if under is None else self.node(talk, under)
        known = talk.with_key(key)
        work = self.engines[by].conversations.append(
            talk.id, content, context=USER, key=key, payload=payload, state=state, parent=parent and parent.id,
            expect=None if expect is None else talk.revision + expect,
        )  # fmt: skip

        if known is not None:
            assert seen(self.run(work)) == expected(known)
        elif parent is not None and parent.deleted:
            self.refused(work, HoldfastError if expect else NotFound)  # which of two reasons is told first is left open
        elif expect:
            self._stale(work, talk.revision)
        else:
            node = self.run(work)
            talk.append(node.id, content, parent=parent and parent.id, payload=payload, key=key, state=state)
            assert seen(node) == expected(talk.nodes[-1])
        self.check(talk)

    @rule(
        pick=picks, by=writers, said=st.lists(st.tuples(texts, keys), min_size=1, max_size=4),
        expect=st.none() | offsets, state=st.none() | changes_of_state,
    )  # fmt: skip
    def append_all(
        self, pick: int, by: int, said: list[tuple[str, str | None]], expect: int | None, state: Changes | None
    ) -> None:
        talk = self.talk(pick)
        work = self.engines[by].conversations.append_all(
            talk.id, [NodeInput(content=content, context=USER, key=key) for content, key in said],
            expect=None if expect is None else talk.revision + expect, state=state,
        )  # fmt: skip

        if expect and any(talk.with_key(key) is None for _, key in said):
            self._stale(work, talk.revision)
        else:
            nodes = self.run(work)
            for (content, key), node in zip(said, nodes, strict=True):
                if talk.with_key(key) is None:
                    talk.append(node.id, content, parent=None, key=key, state=state)
                    state = None
            assert [seen(node) for node in nodes] == [expected(talk.node(node.id)) for node in nodes]
        self.check(talk)

    @rule(pick=picks, which=picks, by=writers, content=texts, offset=offsets)
    def edit(self, pick: int, which: int, by: int, content: str, offset: int) -> None:
        talk = self.talk(pick)
        node = self.node(talk, which)
        work = self.engines[by].conversations.edit(node.id, content, version=node.version + offset)

        if self._may_change(talk, node, offset, work):
            talk.edit(node, content)
            assert seen(self.run(work)) == expected(node)
        self.check(talk)

    @rule(pick=picks, which=picks, by=writers, offset=offsets)
    def delete(self, pick: int, which: int, by: int, offset: int) -> None:
        talk = self.talk(pick)
        node = self.node(talk, which)
        work = self.engines[by].conversations.delete(node.id, version=node.version + offset)

        if self._may_change(talk, node, offset, work):
            talk.delete(node)
            assert seen(self.run(work)) == expected(node)
        self.check(talk)

    @rule(pick=picks, which=picks, by=writers, under=picks, before=st.none() | picks, offset=offsets)
    def move(self, pick: int, which: int, by: int, under: int, before: int | None, offset: int) -> None:
        talk = self.talk(pick)
        node, parent = self.node(talk, which), self.node(talk, under)
        siblings = talk.children(parent)
        # Any node at times, so that some are no siblings; a real one mostly.
        among = siblings if siblings and before is not None and before % 4 else talk.nodes
        sibling = None if before is None else among[before % len(among)]
        work = self.engines[by].conversations.move(
            node.id, version=node.version + offset, parent=parent.id, before=sibling and sibling.id
        )

        above = [each for each in talk.nodes if not each.deleted and node in each_above(talk, each)]
        if parent.deleted or parent in above or (sibling is not None and (sibling is node or sibling not in siblings)):
            self.refused(work, InvalidInput)
        elif self._may_change(talk, node, offset, work):
            talk.move(node, parent, sibling)
            assert seen(self.run(work)) == expected(node)
            order = talk.children(parent)
            assert order.index(node) == (len(order) if sibling is None else order.index(sibling)) - 1
        self.check(talk)

    @precondition(lambda self: len(self.talks) < MOST_TALKS)
    @rule(pick=picks, by=writers, at=st.none() | picks)
    def fork(self, pick: int, by: int, at: int | None) -> None:
        talk = self.talk(pick)
        upto = len(talk.nodes) - 1 if at is None else at % len(talk.nodes)

        made = self.run(self.engines[by].conversations.fork(talk.id, at=None if at is None else upto))

        nodes = self.run(self.engines[by].conversations.since(made.id, -1))
        self.talks.append(talk.fork(made.id, upto, [node.id for node in nodes]))
        self.check(talk, self.talks[-1])

    @rule(pick=picks, by=writers, changes=changes_of_state, offset=st.none() | offsets)
    def set_state(self, pick: int, by: int, changes: Changes, offset: int | None) -> None:
        talk = self.talk(pick)
        current = {key: (talk.users if key.startswith("user:") else talk.own).version(key) for key in changes}
        expect = None if offset is None else {key: version + offset for key, version in current.items()}
        work = self.engines[by].state.set(talk.id, changes, expect=expect)

        if offset:
            refused = self.refused(work, Conflict)
            assert refused.details["current"] == current[str(refused.details["key"])]
        else:
            self.run(work)
            talk.set_state(changes)
        self.check(talk)

    @rule(pick=picks, said=st.lists(texts, min_size=2, max_size=4), state=changes_of_state, which=picks)
    def write_at_once(self, pick: int, said: list[str], state: Changes, which: int) -> None:
        talk = self.talk(pick)
        node = self.node(talk, which)
        first, second = self.engines
        works: list[Awaitable[Node]] = [
            self.engines[number % 2].conversations.append(
                talk.id, content, context=USER, key=f"{uuid4()}", state=state if number == 0 else None
            )
            for number, content in enumerate(said)
        ]
        edits = [engine.conversations.edit(node.id, "at once", version=node.version) for engine in (first, second)]

        *appended, one, two = self.run(gathered([*works, *edits]))

        done: list[tuple[int, Node | None]] = [
            (written.revision, written) for written in appended if isinstance(written, Node)
        ]
        assert len(done) == len(said)
        won = [edited for edited in (one, two) if isinstance(edited, Node)]
        assert len(won) == (0 if node.deleted or node.seq == 0 else 1)
        done += [(edited.revision, None) for edited in won]
        for _, written in sorted(done, key=lambda each: each[0]):
            if written is None:
                talk.edit(node, "at once")
            else:
                changes = state if written.state is not None else None
                talk.append(written.id, written.content, parent=None, key=written.key, state=changes)
        self.check(talk)

    def _stale(self, work: Awaitable[object], current: int) -> None:
        refused = self.refused(work, Conflict)
        assert refused.details["current"] == current

    def _may_change(self, talk: ModelTalk, node: ModelNode, offset: int, work: Awaitable[object]) -> bool:
        """Whether a node may be changed; if not, that the engine says so."""
        if node is talk.nodes[0]:
            self.refused(work, InvalidInput)
        elif offset:
            self._stale(work, node.version)
        elif node.deleted:
            self.refused(work, InvalidInput)
        else:
            return True
        return False

    def teardown(self) -> None:
        self.check(*self.talks)
        for number, talk in enumerate(self.talks):
            conversations = self.engines[number % 2].conversations
            for node in talk.nodes:
                revisions = self.run(conversations.revisions(node.id))
                assert [
                    (each.version, each.content, each.parent, each.deleted) for each in revisions
                ] == node.versions()
            live = [node for node in talk.nodes[1:] if not node.deleted]
            last = self.run(conversations.last(talk.id, 5))
            assert [seen(node) for node in last] == [expected(node) for node in live[-5:]]


def seen(node: Node) -> tuple[object, ...]:
    """What the model knows of a node."""
    return (
        node.id, node.parent, node.seq, node.content, node.payload, node.key, node.state, node.version, node.revision,
        node.deleted,
    )  # fmt: skip


def expected(node: ModelNode | None) -> tuple[object, ...]:
    """The same, as the model has it."""
    assert node is not None
    state = node.state and {key: [] if value is DELETED else [value] for key, value in node.state.items()}
    return (
        node.id, node.parent, node.seq, node.content, node.payload, node.key, state, node.version, node.revision,
        node.deleted,
    )  # fmt: skip


def each_above(talk: ModelTalk, node: ModelNode) -> list[ModelNode]:
    """A node and all above it."""
    above = [node]
    while (parent := talk.node(above[-1].parent)) is not None:
        above.append(parent)
    return above


async def gathered(works: Iterable[Awaitable[Node]]) -> list[Node | BaseException]:
    return list(await asyncio.gather(*works, return_exceptions=True))


@pytest.mark.req("CONV-01", "CONV-03", "CONV-04", "CONV-06", "CONV-08", "ENG-05")
@pytest.mark.parametrize(("examples", "steps"), [(40, 50), pytest.param(200, 100, marks=pytest.mark.soak)])
def test_conversations_are_as_the_model_says(config: Config, examples: int, steps: int) -> None:
    async def opened(stack: AsyncExitStack) -> tuple[Engine, Engine]:
        return (
            await stack.enter_async_context(open_engine(config=config)),
            await stack.enter_async_context(open_engine(config=config)),
        )

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        engines = runner.run(opened(stack))
        try:
            run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
                partial(Machine, runner, engines),  # pyright: ignore[reportArgumentType]
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    suppress_health_check=[HealthCheck.too_slow],
                    print_blob=True,
                ),
            )
        finally:
            runner.run(stack.aclose())
