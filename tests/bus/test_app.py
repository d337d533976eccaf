import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

import holdfast
from holdfast.app import App
from holdfast.bus.handlers import ATTEMPTS, CurrentCommand
from holdfast.core.errors import AlreadyExists, InvalidInput
from holdfast.engine import Engine
from holdfast.skills.function_tools import tool_of
from holdfast.skills.tool import RESERVED

pytestmark = pytest.mark.req("EDA-05")

COMMAND = CurrentCommand("c-1", "add", 1, {})


async def add(first: int, second: int = 1, **more: int) -> int:
    """What an app may declare."""
    return first + second + sum(more.values())


@dataclass
class Adder:
    """An object that is called like an async function, and has no hash."""

    second: int = 1

    async def __call__(self, first: int) -> int:
        return await add(first, self.second)


def wrapped(first: int) -> Coroutine[Any, Any, int]:
    """A plain function around an async one."""
    return add(first)


def positional(first: int, /) -> int:
    """What has no name to be called by."""
    return first


def plus_one(first: int) -> int:
    """What a model can be told of."""
    return first + 1


def variadic(*numbers: int) -> int:
    """What has no names to be called by."""
    return sum(numbers)


def test_a_declared_function_stays_what_it_was() -> None:
    app = holdfast.App()

    declared = app.skill("add", rate=5, timeout=2)(add)

    skill = app.skills["add"]
    assert declared is add
    assert (skill.function, skill.rate, skill.attempts, skill.timeout) == (add, 5, ATTEMPTS, 2)


@pytest.mark.parametrize(
    ("arguments", "result"), [({"first": 1}, 2), ({"first": 1, "second": 5}, 6), ({"first": 1, "third": 7}, 9)]
)
async def test_arguments_are_bound_by_name(arguments: dict[str, int], result: int) -> None:
    app = App()
    app.skill("add")(add)

    assert await app.skills["add"].run(COMMAND, arguments) == result


async def test_whatever_gives_something_to_wait_for_is_waited_for() -> None:
    app = App()
    app.skill("object", timeout=5)(Adder())
    app.skill("function")(wrapped)

    assert app.skills["object"].is_async, "it can be stopped"
    assert await app.skills["object"].run(COMMAND, {"first": 1}) == 2
    assert await app.skills["function"].run(COMMAND, {"first": 1}) == 2


@pytest.mark.req("ENG-07")
async def test_a_missing_argument_is_told_by_name() -> None:
    app = App()
    app.skill("add")(add)

    with pytest.raises(InvalidInput, match="missing a required argument: 'first'"):
        await app.skills["add"].run(COMMAND, {"second": 1})


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (add, {"name": ""}, "its name is not a string of 1 to 200 characters"),
        (add, {"rate": 0}, r"its rate is not a number from 1e-09 to 1e\+09"),
        (add, {"rate": "x"}, "its rate is not a number"),
        (add, {"rate": math.nan}, "its rate is not a number"),
        (add, {"rate": math.inf}, "its rate is not a number"),
        (add, {"attempts": 0}, "`attempts` is not an integer from 1 to 2147483647"),
        (add, {"attempts": 2**40}, "`attempts` is not an integer"),
        (add, {"attempts": 1.5}, "`attempts` is not an integer"),
        (add, {"timeout": -1}, "its timeout is not a number"),
        (add, {"timeout": "x"}, "its timeout is not a number"),
        (print, {"timeout": 1}, "arguments are passed by name, and args cannot be"),
        (positional, {}, "arguments are passed by name, and first cannot be"),
        (variadic, {}, "arguments are passed by name, and numbers cannot be"),
        (lambda: None, {"timeout": 1}, "a plain function cannot be stopped; make it async"),
        ("add", {}, "it has no function to call"),
        (int, {}, "the names of its arguments are unknown"),
    ],
)
def test_a_skill_that_cannot_work_is_refused_when_it_is_declared(
    function: Callable[..., Any], options: dict[str, Any], said: str
) -> None:
    given: dict[str, Any] = {"name": "add", **options}

    with pytest.raises(InvalidInput, match=said):
        App().skill(**given)(function)


@pytest.mark.req("ENG-07")
def test_a_decorator_without_its_name_is_refused() -> None:
    app: Any = App()

    with pytest.raises(InvalidInput, match=r"""Write @app\.skill\("name"\)"""):
        app.skill(add)

    assert not app.skills


def test_a_name_is_declared_once() -> None:
    app = App()
    app.skill("add")(add)

    with pytest.raises(AlreadyExists, match="the skill add is declared twice"):
        app.skill("add")(add)


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(("concurrency", "said"), [(0, "is invalid: it is 0"), ("x", "is invalid: it is 'x'")])
async def test_a_worker_that_could_do_nothing_is_refused(engine: Engine, concurrency: Any, said: str) -> None:
    app = App()
    app.skill("add")(add)

    with pytest.raises(InvalidInput, match=said):
        engine.worker(app, concurrency=concurrency)


@pytest.mark.req("SKILL-01")
def test_functions_of_one_name_are_not_crossed() -> None:
    def search(query: str) -> str:
        """Search here."""
        return f"here: {query}"

    def elsewhere(query: str) -> str:
        """Search elsewhere."""
        return f"elsewhere: {query}"

    elsewhere.__name__ = "search"
    app = App()
    app.add_skill("one", instructions="Search.", tools=[search])
    app.add_skill("again", instructions="Search.", tools=[search])

    with pytest.raises(AlreadyExists, match="two functions have the tool name search"):
        app.add_skill("two", instructions="Search.", tools=[elsewhere])


@pytest.mark.req("SKILL-01")
def test_a_function_that_two_agents_have_is_one_tool() -> None:
    app = App()
    app.agent("one", tools=[plus_one])
    app.agent("two", tools=[plus_one])

    assert list(app.all_tools) == ["plus_one"]


@pytest.mark.req("SKILL-01")
@pytest.mark.parametrize("name", sorted(RESERVED))
def test_names_of_the_engine_s_own_tools_are_not_given_away(name: str) -> None:
    app = App()

    with pytest.raises(AlreadyExists, match=f"the tool name {name} is reserved"):
        app.tool(name=name)(plus_one)
    with pytest.raises(AlreadyExists, match=f"the tool name {name} is reserved"):
        app.add_skill("more", instructions="Add.", tools=[tool_of(plus_one, name=name)])
    app.skill(name)(plus_one)

    assert not app.all_tools
