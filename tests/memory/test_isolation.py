import asyncio
from uuid import uuid4

import pytest

from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.memory import Hit, Memories, organization, session, user
from tests.clock import Clock

TEXTS = ["Prefers tea over coffee", "Lives in Oslo", "Allergic to nuts", "Plays chess on Sundays"]
QUESTION = "What does she drink?"
pytestmark = pytest.mark.req("MEM-03", "ENG-04")


def told(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.memory.content, hit.score) for hit in hits]


@pytest.fixture
async def two(engine: Engine) -> tuple[Memories, Memories]:
    """The memories of two tenants."""
    await engine.tenants.create("acme")
    await engine.tenants.create("globex")
    return engine.tenant("acme").memory, engine.tenant("globex").memory


async def test_what_one_tenant_remembers_another_never_finds(two: tuple[Memories, Memories]) -> None:
    acme, globex = two
    for owner in (user("ann"), session("web"), organization()):
        await acme.remember_many(owner, TEXTS)

    assert await globex.context(QUESTION, session="web", user="ann") == []
    assert await globex.search(user("ann"), TEXTS[0], min_importance=0) == []
    assert len(await acme.context(QUESTION, session="web", user="ann")) == 12


async def test_scores_are_the_same_whatever_others_remember(two: tuple[Memories, Memories], clock: Clock) -> None:
    await clock.stop()
    acme, globex = two
    await acme.remember_many(user("ann"), TEXTS)
    alone = told(await acme.search(user("ann"), QUESTION))

    await globex.remember_many(user("ann"), [*TEXTS, *(f"tea and coffee, number {number}" for number in range(20))])
    await acme.remember_many(user("bob"), [*TEXTS, *(f"What she drinks is tea {number}" for number in range(20))])
    await acme.remember_many(organization(), TEXTS)
    after = told(await acme.search(user("ann"), QUESTION))

    assert after == alone


async def test_two_users_with_the_same_words_have_a_memory_each(engine: Engine) -> None:
    ann = await engine.memory.remember(user("ann"), "Prefers tea", key="drink")
    bob = await engine.memory.remember(user("bob"), "Prefers tea", key="drink")
    await engine.memory.forget(ann.id)

    hits = await engine.memory.search(user("bob"), "tea")

    assert [hit.memory.id for hit in hits] == [bob.id]
    assert await engine.memory.search(user("ann"), "tea") == []


@pytest.mark.parametrize("verb", ["get", "edit", "supersede", "pin", "bury", "forget", "history", "why_not"])
async def test_the_ids_of_others_are_as_unknown_as_made_up_ones(two: tuple[Memories, Memories], verb: str) -> None:
    acme, globex = two
    memory = await acme.remember(user("ann"), "Prefers tea")

    async def said(id: object) -> str:
        arguments: dict[str, tuple[object, ...]] = {"supersede": ("x",), "why_not": (user("ann"), "tea")}
        options = {"content": "x"} if verb == "edit" else {}
        try:
            answer = await getattr(globex, verb)(id, *arguments.get(verb, ()), **options)
        except NotFound as error:
            return str(error).replace(str(id), "ID")
        return answer.reason

    assert await said(memory.id) == await said(uuid4())
    assert await acme.get(memory.id) == memory


async def test_names_that_look_alike_are_different_owners(engine: Engine) -> None:
    names = ["ann", "Ann", "ann ", "ann\u0000", "an\u0301n", "\u00e1nn", "x" * 200, "安"]

    for number, name in enumerate(names):
        await engine.memory.remember(user(name), f"tea {number}")
    found = [[hit.memory.content for hit in await engine.memory.search(user(name), "tea")] for name in names]

    assert found == [[f"tea {number}"] for number in range(len(names))]


async def test_many_tenants_at_once_see_their_own_and_only_that(engine: Engine) -> None:
    names = [f"tenant-{number}" for number in range(6)]
    for name in names:
        await engine.tenants.create(name)

    async def live(name: str) -> set[str]:
        memories = engine.tenant(name).memory
        seen: set[str] = set()
        for number in range(5):
            await memories.remember(user("ann"), f"tea {name} {number}")
            seen |= {hit.memory.content for hit in await memories.search(user("ann"), f"tea {number}", limit=50)}
        return seen

    seen = await asyncio.gather(*(live(name) for name in names))

    assert seen == [{f"tea {name} {number}" for number in range(5)} for name in names]
