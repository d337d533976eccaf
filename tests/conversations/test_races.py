"""Writers and readers at once, over two engines as two processes have them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast.conversations import Conversation, Node, NodeInput
from holdfast.core.errors import Conflict, InvalidInput
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction

WRITERS = 32
EACH = 10
USER = "text:user:ann"
CHANGED = "select max(revision) from state_change where tenant_id = $1 and root = $2"


@pytest.fixture
def engines(engine: Engine, second: Engine) -> tuple[Engine, Engine]:
    """Two engines on one database."""
    return engine, second


async def together(work: Callable[[int], Awaitable[object]], count: int = WRITERS) -> None:
    """Do it this many times at once."""
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(_awaited(work(number)))


async def _awaited(work: Awaitable[object]) -> None:
    await work


@pytest.mark.req("CONV-03")
async def test_many_writers_of_one_conversation_leave_no_gap(
    engines: tuple[Engine, Engine], talk: Conversation
) -> None:
    acknowledged: dict[int, str] = {}

    async def write(writer: int) -> None:
        conversations = engines[writer % 2].conversations
        for number in range(EACH):
            content = f"{writer} {number}"
            if number % 5 == 4:
                nodes = await conversations.append_all(
                    talk.id, [NodeInput(content=f"{content} {part}", context=USER) for part in range(3)]
                )
                assert [node.seq - nodes[0].seq for node in nodes] == [0, 1, 2], "with nothing between"
            else:
                key = f"{writer}/{number}" if number % 2 else None
                nodes = [await conversations.append(talk.id, content, context=USER, key=key, state={content: 1})]
            acknowledged.update((node.seq, node.content) for node in nodes)

    await together(write)

    nodes = await engines[0].conversations.since(talk.id, 0)
    assert {node.seq: node.content for node in nodes} == acknowledged
    assert [node.seq for node in nodes] == list(range(1, len(acknowledged) + 1))
    for writer in range(WRITERS):
        own = [node.content for node in nodes if node.author == "ann" and node.content.split()[0] == str(writer)]
        assert own == sorted(own, key=lambda content: [int(part) for part in content.split()])


@pytest.mark.req("CONV-03")
async def test_appends_to_two_conversations_in_opposite_order_all_succeed(
    engines: tuple[Engine, Engine], talk: Conversation
) -> None:
    other = await engines[0].conversations.create(user="ann", app="shop")

    async def write(writer: int) -> None:
        engine = engines[writer % 2]
        order = (talk, other) if writer < 8 else (other, talk)

        async def both(tx: Transaction) -> None:
            for place in order:
                await engine.conversations.append(place.id, str(writer), context=USER, tx=tx)

        await engine.atomically(both)

    await together(write, 16)

    for place in (talk, other):
        nodes = await engines[0].conversations.since(place.id, 0)
        assert [node.seq for node in nodes] == list(range(1, 17))
        assert {int(node.content) for node in nodes} == set(range(16))


@pytest.mark.req("CONV-03")
async def test_a_reader_never_sees_a_number_appear_before_one_it_has_read(
    engines: tuple[Engine, Engine], talk: Conversation
) -> None:
    read: list[int] = []
    whole: list[list[int]] = []

    async def write(writer: int) -> None:
        engine = engines[writer % 2]
        for number in range(EACH):
            async with engine.transaction() as tx:  # which commits later than the number was taken
                await engine.conversations.append(talk.id, f"{writer} {number}", context=USER, tx=tx)
                await tx.now()

    async def follow(conversations_of: Engine) -> None:
        while len(read) < 8 * EACH:
            news = await conversations_of.conversations.since(talk.id, read[-1] if read else 0)
            read.extend(node.seq for node in news)
            whole.append([node.seq for node in await conversations_of.conversations.since(talk.id, 0)])

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(follow(engines[1]))
        for writer in range(8):
            group.create_task(write(writer))

    assert read == list(range(1, 8 * EACH + 1))
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in whole)


@pytest.mark.req("CONV-06")
@pytest.mark.parametrize("expect", [None, 0])
async def test_one_key_from_many_tasks_stores_once(
    engines: tuple[Engine, Engine], talk: Conversation, expect: int | None
) -> None:
    async def write(writer: int) -> Node:
        return await engines[writer % 2].conversations.append(
            talk.id, str(writer), context=USER, key="k", expect=expect, state={"n": writer}
        )

    nodes = await asyncio.gather(*(write(writer) for writer in range(16)))

    assert len({node.id for node in nodes}) == 1
    assert await engines[0].conversations.since(talk.id, 0) == [nodes[0]]
    assert await engines[0].state.get(talk.id) == {"n": int(nodes[0].content)}


@pytest.mark.req("CONV-06", "ENG-05")
async def test_a_retry_with_its_key_and_its_expected_revision_gives_the_first_node(
    engines: tuple[Engine, Engine], talk: Conversation
) -> None:
    first, second = engines

    async def attempt(engine: Engine) -> Node:
        return await engine.conversations.append(talk.id, "hi", context=USER, key="k", expect=0)

    nodes = await asyncio.gather(attempt(first), attempt(second), attempt(first))

    await second.conversations.append(talk.id, "meanwhile", context=USER)
    assert await attempt(first) == nodes[0] == nodes[1] == nodes[2]
    assert (await first.conversations.get(talk.id)).last_seq == 2


@pytest.mark.req("ENG-05")
async def test_of_those_who_expect_one_revision_one_is_let_through(
    engines: tuple[Engine, Engine], talk: Conversation
) -> None:
    async def write(writer: int) -> Node:
        return await engines[writer % 2].conversations.append(talk.id, str(writer), context=USER, expect=0)

    outcomes = await asyncio.gather(*(write(writer) for writer in range(16)), return_exceptions=True)

    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Node)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert len(lost) == 15
    assert {conflict.current for conflict in lost} == {1}
    assert await engines[0].conversations.since(talk.id, 0) == [won]


@pytest.mark.req("CONV-03", "CONV-04")
async def test_edits_moves_and_deletes_at_once_leave_a_tree(
    engines: tuple[Engine, Engine], document: Conversation
) -> None:
    first = engines[0].conversations
    nodes = [await first.append(document.id, str(number), context="text:section:a") for number in range(6)]

    async def change(number: int) -> None:
        conversations, node = engines[number % 2].conversations, nodes[number % 6].id
        changes: tuple[Callable[[int], Awaitable[Node]], ...] = (
            lambda version: conversations.move(node, version=version, parent=nodes[(number + 1) % 6].id),
            lambda version: conversations.edit(node, f"edited {number}", version=version),
            lambda version: conversations.move(node, version=version, parent=document.id),
        )
        for work in changes:
            version = (await conversations.read(node)).version
            await _unless_refused(work(version))

    await together(change, 24)

    found = await first.subtree(document.id)
    assert {node.id for node in found} == {document.id, *(node.id for node in nodes)}, "no cycle, nothing lost"
    for node in found[1:]:
        revisions = await first.revisions(node.id)
        assert [revision.version for revision in revisions] == list(range(1, node.version + 1))


async def _unless_refused(work: Awaitable[object]) -> None:
    try:
        await work
    except (Conflict, InvalidInput):  # another version by now, or it would become its own descendant
        return


@pytest.mark.req("CONV-08")
async def test_a_fork_under_writers_is_of_one_moment(engines: tuple[Engine, Engine], talk: Conversation) -> None:
    said = await engines[0].conversations.append(talk.id, "first", context=USER)

    async def write(writer: int) -> None:
        engine = engines[writer % 2]
        for number in range(EACH):
            await engine.conversations.append(talk.id, "x", context=USER, state={"n": f"{writer} {number}"})
            await engine.state.set(talk.id, {"n": f"{writer} {number} set"})
            version = (await engine.conversations.read(said.id)).version
            await _unless_refused(engine.conversations.edit(said.id, f"{writer} {number}", version=version))

    async def fork(number: int) -> list[Conversation]:
        return [await engines[number % 2].conversations.fork(talk.id) for _ in range(EACH)]

    async with asyncio.timeout(60):
        writing = asyncio.gather(*(write(writer) for writer in range(4)))
        first, second = await asyncio.gather(fork(0), fork(1))
        await writing

    conversations, state = engines[0].conversations, engines[0].state
    for made in (*first, *second):
        nodes = await conversations.since(made.id, 0)
        steps = [step.state async for step in conversations.replay(made.id)]
        changed = await engines[0].database.value(CHANGED, made.id)
        assert [node.seq for node in nodes] == list(range(1, made.last_seq + 1))
        assert max(changed or 0, *(node.revision for node in nodes)) <= made.revision, "nothing that came later"
        assert await state.get(made.id) == steps[-1]
