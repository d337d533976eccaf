"""Services: what can be declared as one, and how it is kept."""

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import App, Run
from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput
from holdfast.engine import Engine
from holdfast.execution.function_runner import FunctionRunner
from holdfast.skills.declarations import Declarations
from holdfast.skills.service import name_of, service_of
from holdfast.skills.tool import Tool
from holdfast.skills.tools import Tools

pytestmark = pytest.mark.req("RPC-03")

CREATE = "shop.example/market/createOrder/1.0"
CANCEL = "shop.example/market/cancelOrder/1.0"
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"parcel": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["parcel"],
}
ENDPOINT: dict[str, Any] = {
    "description": "",
    "parameters": {},
    "kind": "rest",
    "endpoint": "https://shop.example/x",
    "method": "GET",
}


@dataclass
class Order:
    """What is ordered."""

    parcel: str
    amount: int = 1


async def create_order(order: dict[str, Any]) -> dict[str, Any]:
    """Order something."""
    return order


async def create_typed(order: Order, run: Run) -> str:
    """Order something."""
    return f"{order.amount} {order.parcel} for {run.user}"


async def by_name(parcel: str, amount=1) -> str:  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    """Order something."""
    return f"{amount} {parcel}"


def run() -> Run:
    return Run("ann", None, None, None, None, "1", "1")


async def called(tool: Tool, arguments: dict[str, Any]) -> Any:
    assert tool.function is not None
    return await tool.function.run(run(), arguments, name=tool.name)


async def test_params_come_by_name_or_as_one_object_as_the_function_takes_them() -> None:
    whole, typed, named = (service_of(each, CREATE, ORDER) for each in (create_order, create_typed, by_name))
    signed = service_of(by_name, CREATE, {**ORDER, "properties": {"parcel": {}, "amount": {}}}, name="order")

    assert await called(whole, {"parcel": "AB"}) == {"parcel": "AB"}
    assert await called(typed, {"parcel": "AB", "amount": 2}) == "2 AB for ann"
    assert await called(named, {"parcel": "AB"}) == "1 AB"
    assert (whole.parameters, whole.service, whole.description) == (ORDER, CREATE, "Order something.")
    assert signed.name == "order"
    with pytest.raises(InvalidInput, match="amount"):
        await called(typed, {"parcel": "AB", "amount": "two"})


async def test_without_a_schema_the_signature_tells_as_of_a_tool() -> None:
    async def cancel(order: str, reason: str = "") -> str:
        return order + reason

    tool = service_of(cancel, CANCEL, idempotent=True, timeout=5, approve=True, access="write")

    assert [*tool.parameters["properties"]] == ["order", "reason"]
    assert (tool.idempotent, tool.timeout, tool.approve, tool.access) == (True, 5, True, "write")
    assert await called(tool, {"order": "7"}) == "7"


def test_a_tool_is_called_as_its_method_and_a_long_one_is_told_from_others() -> None:
    long = [name_of(f"{'shop.example.' * 6}/market/{action}/1.0") for action in ("create", "cancel")]

    assert name_of(CREATE) == "shop_example_market_createOrder_1_0"
    assert [len(name) for name in long] == [64, 64]
    assert long[0] != long[1]
    assert long[0] == name_of(f"{'shop.example.' * 6}/market/create/1.0")


async def takes_two(order: dict[str, Any], more: str) -> None: ...
async def takes_text(order: str) -> None: ...
async def takes_some(parcel: str) -> None: ...


REFUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "three parts": (create_order, "a/b/c", None, "four parts"),
    "an empty part": (create_order, "a//b/c", None, "four parts"),
    "a space": (create_order, "a/b c/d/e", None, "without spaces"),
    "a control character": (create_order, "a/b/c/d\0", None, "four parts"),
    "half a character": (create_order, "a/b/c/\ud83d", None, "four parts"),
    "too long": (create_order, f"a/b/c/{'d' * 200}", None, "Shorten it to at most 200"),
    "no text": (create_order, 7, None, "four parts"),
    "no function": (CREATE, CREATE, None, "on a function"),
    "no schema": (create_order, CREATE, {"properties": {"parcel": {"type": "nothing"}}}, "Correct the schema"),
    "a schema of a list": (create_order, CREATE, {"type": "array"}, "Correct the schema"),
    "two that take no property": (takes_two, CREATE, ORDER, "like the properties"),
    "one that takes no object": (takes_text, CREATE, ORDER, "dataclass"),
    "one that takes not all": (takes_some, CREATE, ORDER, "for each property"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_a_service_is_refused_and_says_what_to_do(kind: str) -> None:
    function, method, schema, next = REFUSED[kind]

    with pytest.raises(InvalidInput) as refused:
        App().service(method, schema)(function)

    assert next in str(refused.value)


def test_a_method_and_a_name_are_declared_once_and_agents_are_given_the_service() -> None:
    app = App()
    app.service(CREATE, ORDER)(create_order)

    agent = app.agent("support", tools=[create_order])

    assert [tool.service for tool in agent.tools] == [CREATE]
    assert app.all_tools.keys() == {name_of(CREATE)}
    with pytest.raises(AlreadyExists, match="declared twice"):
        app.service(CREATE, ORDER, name="other")(create_typed)
    with pytest.raises(AlreadyExists, match="name="):
        app.service(CREATE.replace(".", "-").replace("-", "_"))(create_typed)


async def test_a_service_is_a_row_with_its_method_and_follows_the_program(words_only: Engine, tools: Tools) -> None:
    declaring = Declarations(words_only.database)
    first = [service_of(create_order, CREATE, ORDER, name="one"), service_of(create_typed, CANCEL, ORDER, name="two")]
    swapped = [service_of(create_order, CANCEL, ORDER, name="one"), service_of(create_typed, CREATE, ORDER, name="two")]
    renamed = [service_of(create_order, CANCEL, ORDER, name="three")]

    stored = await declaring.declare("shop", first, whole=True)
    before = {name: (await tools.get(name)).tool for name in ("one", "two")}
    await declaring.declare("shop", swapped, whole=True)
    between = {name: (await tools.get(name)).tool.service for name in ("one", "two")}
    await declaring.declare("shop", renamed, whole=True)
    after = {name: await tools.get(name) for name in ("one", "two", "three")}

    assert {name: tool.service for name, tool in stored.items()} == {"one": CREATE, "two": CANCEL}
    assert {name: tool.service for name, tool in before.items()} == {"one": CREATE, "two": CANCEL}
    assert before["one"].parameters == ORDER
    assert between == {"one": CANCEL, "two": CREATE}
    assert {name: (entry.tool.service, entry.active) for name, entry in after.items()} == {
        "one": (None, False),
        "two": (CREATE, False),
        "three": (CANCEL, True),
    }


async def test_a_method_that_another_one_has_is_not_taken_over(words_only: Engine, tools: Tools) -> None:
    declaring = Declarations(words_only.database)
    await declaring.declare("shop", [service_of(create_order, CREATE, ORDER, name="order")])
    await tools.put("by_hand", **ENDPOINT, service=CANCEL)

    async def refused(work: Any) -> HoldfastError:
        with pytest.raises(AlreadyExists) as found:
            await work
        return found.value

    other = await refused(declaring.declare("market", [service_of(create_typed, CREATE, ORDER, name="other")]))
    stored = await refused(declaring.declare("shop", [service_of(create_typed, CANCEL, ORDER, name="cancel")]))
    twins = [service_of(create_order, "a/b/c/d", ORDER, name=name) for name in ("a", "b")]
    twice = await refused(declaring.declare("shop", twins))
    put = await refused(tools.put("late", **ENDPOINT, service=CREATE))

    assert [each.why for each in (other, stored, twice, put)] == [
        f"the tool {name} already has it" for name in ("order", "by_hand", "a", "order")
    ]
    assert CREATE in str(other)


async def test_a_tool_that_is_stored_by_hand_keeps_its_method_until_it_is_taken_away(tools: Tools) -> None:
    changed_endpoint: dict[str, Any] = {**ENDPOINT, "description": "Order."}

    made = await tools.put("by_hand", **ENDPOINT, service=CREATE)
    changed = await tools.put("by_hand", **changed_endpoint, version=made.version)
    without = await tools.put("by_hand", **ENDPOINT, service=None, version=changed.version)

    assert [each.tool.service for each in (made, changed, without)] == [CREATE, CREATE, None]
    with pytest.raises(InvalidInput, match="four parts"):
        await tools.put("other", **ENDPOINT, service="a/b")


async def test_a_row_has_its_function_called_as_the_program_that_declared_it_would(
    words_only: Engine, tools: Tools
) -> None:
    await Declarations(words_only.database).declare("shop", [service_of(create_typed, CREATE, ORDER)])
    row = (await tools.get(name_of(CREATE))).tool

    result = await FunctionRunner([__name__]).run(row, {"parcel": "AB"}, run(), timeout=5)

    assert result.value == "1 AB for ann"
