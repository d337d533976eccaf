"""Links of skills: to tools, to what they need, to agents; in which version, and never in a circle."""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from holdfast.core.config import Config
from holdfast.core.errors import Conflict, HoldfastError, InvalidInput, NotFound
from holdfast.engine import Engine, open_engine
from holdfast.skills.history import ChangeHistory
from holdfast.skills.skills import Skills
from holdfast.skills.tools import Tools

pytestmark = pytest.mark.req("SKILL-01")

Result = TypeVar("Result")
SCHEMA = {"type": "object", "properties": {"parcel": {"type": "string"}, "limit": {"type": "integer"}}}


@pytest.fixture
async def known(words_only: Engine, skills: Skills, tools: Tools) -> Skills:
    """The skills a to d, the tool track, and the agent support."""
    for name in "abcd":
        await skills.put(name, instructions="")
    await tools.put("track", description="", parameters=SCHEMA, kind="function", reference="shop:track", access="write")
    await words_only.definitions.put("support", instructions="")
    return skills


async def test_a_skill_grants_what_the_tool_takes_unless_it_says_less(known: Skills) -> None:
    by_default = await known.link("a", "track", by="ann")
    less = await known.link("b", "track", access="read", config={"arguments": {"limit": 5}, "timeout": 3}, active=False)

    assert (by_default.access, by_default.config, by_default.active, by_default.version, by_default.updated_by) == (
        "write", {}, True, 1, "ann",
    )  # fmt: skip
    assert (less.access, less.config, less.active) == ("read", {"arguments": {"limit": 5}, "timeout": 3}, False)
    assert await known.tools_of("b") == [less]
    assert await known.tools_of("c") == []


@pytest.mark.parametrize(
    "said",
    [
        {"argument": {}},
        {"arguments": []},
        {"arguments": {"unknown": 1}},
        {"arguments": {"limit": "many"}},
        {"timeout": 0},
        {"approve": "yes"},
        ["arguments"],
    ],
)
async def test_a_config_that_says_nothing_of_the_tool_is_refused(known: Skills, said: Any) -> None:
    with pytest.raises(InvalidInput, match="config"):
        await known.link("a", "track", config=said)

    assert await known.tools_of("a") == []


@pytest.mark.req("ENG-05")
async def test_a_link_is_changed_in_the_version_that_was_read(known: Skills, history: ChangeHistory) -> None:
    await known.link("a", "track", version=0)
    before = len(await history.of())

    same = await known.link("a", "track", version=1, by="bob")
    changed = await known.link("a", "track", access="execute", version=1)

    assert (same.version, same.updated_by, changed.version) == (1, "", 2)
    assert len(await history.of()) == before + 1
    with pytest.raises(Conflict) as stale:
        await known.link("a", "track", version=1)
    with pytest.raises(Conflict):
        await known.unlink("a", "track", version=1)
    with pytest.raises(Conflict):
        await known.link("b", "track", version=1)
    assert (stale.value.expected, stale.value.current) == (1, 2)


async def test_what_is_not_there_is_not_linked(known: Skills) -> None:
    wrong: list[tuple[Awaitable[object], str]] = [
        (known.link("none", "track"), "there is no skill 'none'"),
        (known.link("a", "none"), "there is no tool 'none'"),
        (known.link("a", "none", config={"approve": True}), "there is no tool 'none'"),
        (known.depend("none", "a"), "there is no skill 'none'"),
        (known.depend("a", "none"), "there is no skill 'none'"),
        (known.assign("none", "a"), "there is no agent 'none'"),
        (known.assign("support", "none"), "there is no skill 'none'"),
        (known.tools_of("none"), "there is no skill 'none'"),
        (known.needs("none"), "there is no skill 'none'"),
        (known.agents_of("none"), "there is no skill 'none'"),
        (known.skills_of("none"), "there is no agent 'none'"),
        (known.unlink("a", "track"), "the skill a does not have the tool track"),
        (known.undepend("a", "b"), "the skill a does not need b"),
        (known.unassign("support", "a"), "the agent support does not have the skill a"),
    ]

    for work, said in wrong:
        with pytest.raises(NotFound, match=said):
            await work


async def test_links_are_taken_away(known: Skills) -> None:
    await known.link("a", "track")
    await known.depend("a", "b")
    await known.assign("support", "a")

    await known.unlink("a", "track", version=1)
    await known.undepend("a", "b")
    await known.unassign("support", "a")

    assert (await known.tools_of("a"), await known.needs("a"), await known.skills_of("support")) == ([], [], [])
    await known.remove("b")


async def test_a_skill_needs_others_or_can_use_them(known: Skills) -> None:
    must = await known.depend("a", "b")
    can = await known.depend("a", "c", required=False)

    assert await known.needs("a") == [must, can]
    assert [(each.on, each.required, each.active) for each in (must, can)] == [("b", True, True), ("c", False, True)]
    assert (await known.depend("a", "c", required=True)).version == 2


async def test_a_circle_of_needs_is_named_in_order(known: Skills) -> None:
    await known.depend("b", "c")
    await known.depend("c", "a", required=False, active=False)
    await known.depend("b", "d")

    with pytest.raises(InvalidInput, match="a needs b, b needs c, c needs a") as refused:
        await known.depend("a", "b")
    with pytest.raises(InvalidInput, match="a needs a"):
        await known.depend("a", "a")

    assert refused.value.details["circle"] == ["a", "b", "c", "a"]
    assert await known.needs("a") == []


async def test_many_ways_between_two_skills_take_no_time(skills: Skills) -> None:
    for level in range(30):
        for side in "xy":
            await skills.put(f"{side}{level}", instructions="")
            for other in "xy" if level else "":
                await skills.depend(f"{side}{level}", f"{other}{level - 1}")

    async with asyncio.timeout(20):  # there are 2 to the power of 29 of them
        with pytest.raises(InvalidInput, match="that would be a cycle"):
            await skills.depend("x0", "x29")


async def test_two_opposed_needs_at_once_make_no_circle(known: Skills, words_only: Engine, config: Config) -> None:
    async with open_engine(config=config) as other_process:
        others = Skills(other_process.database, Tools(other_process.database))
        for _ in range(10):
            done = await asyncio.gather(known.depend("a", "b"), others.depend("b", "a"), return_exceptions=True)

            [refused] = [each for each in done if isinstance(each, HoldfastError)]
            assert isinstance(refused, InvalidInput)
            assert "that would be a cycle" in refused.why
            await known.undepend(*("ab" if await known.needs("a") else "ba"))


async def test_skills_stand_in_the_prompt_by_priority_then_sequence_then_name(known: Skills) -> None:
    await known.assign("support", "d", priority=5, config={"approve": True})
    await known.assign("support", "b", sequence=2)
    await known.assign("support", "c", sequence=1)
    await known.assign("support", "a", sequence=1)

    assert [each.skill for each in await known.skills_of("support")] == ["d", "a", "c", "b"]
    assert [(each.agent, each.priority, each.config) for each in await known.agents_of("d")] == [
        ("support", 5, {"approve": True})
    ]
    with pytest.raises(InvalidInput, match=r"the priority .* is invalid"):
        await known.assign("support", "a", priority=2**31)
    with pytest.raises(Conflict):
        await known.assign("support", "a", version=7)


async def test_an_agent_that_is_removed_while_skills_are_given_to_it_is_gone(known: Skills, words_only: Engine) -> None:
    for n in range(5):
        await words_only.definitions.put(f"agent{n}", instructions="")

        done = await asyncio.gather(
            *(known.assign(f"agent{n}", name) for name in "abcd"), words_only.definitions.remove(f"agent{n}"),
            return_exceptions=True,
        )  # fmt: skip

        assert all(isinstance(each, NotFound) or not isinstance(each, BaseException) for each in done)


class Machine(RuleBasedStateMachine):
    """Two engines that have skills need one another, and a graph that says what may be."""

    names = st.sampled_from("abcdef")

    def __init__(self, runner: asyncio.Runner, services: tuple[Skills, Skills]) -> None:
        super().__init__()
        self.runner = runner
        self.services = services
        self.graph: dict[str, set[str]] = {}
        for name in "abcdef":
            self.put(0, name)

    def run(self, work: Awaitable[Result]) -> Result:
        async def awaited() -> Result:
            return await work

        return self.runner.run(awaited())

    def reaches(self, one: str, other: str) -> bool:
        return one == other or any(self.reaches(each, other) for each in self.graph[one])

    @rule(by=st.integers(0, 1), name=names)
    def put(self, by: int, name: str) -> None:
        if name not in self.graph:
            self.run(self.services[by].put(name, instructions=""))
            self.graph[name] = set()

    @rule(by=st.integers(0, 1), one=names, other=names, required=st.booleans())
    def depend(self, by: int, one: str, other: str, required: bool) -> None:
        work = self.services[by].depend(one, other, required=required)
        if one not in self.graph or other not in self.graph:
            self.refused(work, NotFound)
        elif self.reaches(other, one):
            way = cast(list[str], self.refused(work, InvalidInput).details["circle"])
            assert (way[0], way[1], way[-1]) == (one, other, one)
            assert all(there in self.graph[here] for here, there in pairwise(way[1:]))
        else:
            self.run(work)
            self.graph[one].add(other)

    @rule(by=st.integers(0, 1), one=names, other=names)
    def undepend(self, by: int, one: str, other: str) -> None:
        work = self.services[by].undepend(one, other)
        if other in self.graph.get(one, ()):
            self.run(work)
            self.graph[one].remove(other)
        else:
            self.refused(work, NotFound)

    @rule(by=st.integers(0, 1), name=names)
    def remove(self, by: int, name: str) -> None:
        work = self.services[by].remove(name)
        if name not in self.graph:
            self.refused(work, NotFound)
        elif dependents := sorted(each for each, needs in self.graph.items() if name in needs):
            assert self.refused(work, InvalidInput).details["dependents"] == dependents
        else:
            self.run(work)
            del self.graph[name]

    def refused(self, work: Awaitable[object], kind: type[HoldfastError]) -> HoldfastError:
        with pytest.raises(kind) as refused:
            self.run(work)
        return refused.value

    def teardown(self) -> None:
        for name, needs in self.graph.items():
            assert {each.on for each in self.run(self.services[0].needs(name))} == needs
        for name in self.graph:
            for other in self.graph[name]:
                self.run(self.services[0].undepend(name, other))
        for name in self.graph:
            self.run(self.services[1].remove(name))


def test_whatever_is_linked_in_any_order_is_as_the_graph_says(config: Config, no_models: None) -> None:
    async def opened(stack: AsyncExitStack) -> tuple[Skills, Skills]:
        engines = [await stack.enter_async_context(open_engine(config=config)) for _ in range(2)]
        one, other = (Skills(each.database, Tools(each.database)) for each in engines)
        return one, other

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        services = runner.run(opened(stack))
        try:
            run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
                partial(Machine, runner, services),  # pyright: ignore[reportArgumentType]
                settings=settings(
                    max_examples=20,
                    stateful_step_count=25,
                    suppress_health_check=[HealthCheck.too_slow],
                    print_blob=True,
                ),
            )
        finally:
            runner.run(stack.aclose())


@pytest.mark.req("SKILL-06")
async def test_what_is_left_out_of_a_change_of_a_link_stays_as_it_is(known: Skills) -> None:
    config = {"approve": True, "arguments": {"limit": 5}}
    await known.link("a", "track", access="read", config=config, active=False)
    await known.assign("support", "a", config=config, priority=3, sequence=4, active=False)
    await known.depend("a", "b", required=False, active=False)

    link = await known.link("a", "track", access="execute")
    assigned = await known.assign("support", "a", priority=7)
    need = await known.depend("a", "b", active=True)
    taken = await known.link("a", "track", access=None, config={})

    assert (link.access, link.config, link.active, link.version) == ("execute", config, False, 2)
    assert (assigned.config, assigned.priority, assigned.sequence, assigned.active) == (config, 7, 4, False)
    assert (need.required, need.active) == (False, True)
    assert (taken.access, taken.config) == ("write", {})


async def test_an_assignment_s_config_has_to_fit_the_tools_of_the_skill(known: Skills) -> None:
    await known.link("a", "track")

    with pytest.raises(InvalidInput, match=r"`arguments.limit` does not match the schema of the tool track"):
        await known.assign("support", "a", config={"arguments": {"limit": "many"}})
    given = await known.assign("support", "a", config={"arguments": {"limit": 5, "of another tool": 1}})

    assert given.config == {"arguments": {"limit": 5, "of another tool": 1}}


async def test_what_is_not_linked_cannot_be_unlinked_and_where_to_look_is_told(known: Skills) -> None:
    for unlinked in (known.unlink("a", "track"), known.undepend("a", "b"), known.unassign("support", "a")):
        with pytest.raises(NotFound, match="holdfast skills show"):
            await unlinked
