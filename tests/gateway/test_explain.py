"""Explanations of calls: the same verdict as the call, with the reason and what to change."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import product
from random import Random
from typing import Any

import pytest

from holdfast import App
from holdfast.access.principals import Principal
from holdfast.core.errors import Forbidden, NotFound
from holdfast.gateway.explain import Explanation, explain_call
from holdfast.gateway.gateway import Gateway
from tests.gateway.shop import ADMIN, MEMBER, READER, caller, shop

pytestmark = pytest.mark.req("MCP-07")

CALLERS: tuple[dict[str, Any], ...] = (
    {"user": "ann", "scopes": ADMIN},
    {"user": "ann", "scopes": MEMBER},
    {"user": "bob", "scopes": MEMBER},
    {"user": "bob", "scopes": READER},
    {"user": "ann", "scopes": MEMBER, "agent": "support"},
    {"user": "bob", "scopes": MEMBER, "agent": "clerk"},
    {"user": "ann", "scopes": MEMBER, "agent": "nobody"},
)
CALLS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("track", {"parcel": "1"}),
    ("track", {}),
    ("refund", {"order": "1"}),
    ("refund", {"order": "1", "amount": 500}),
    ("refund", {"order": "1", "amount": "much"}),
    ("picture", {"order": "1"}),
    ("closed", {"order": "1"}),
    ("pay", {"order": "1"}),
    ("search_tools", {"query": "x"}),
    ("search_skills", {"query": "x"}),
    ("nothing", {}),
    ("call_tool", {"name": "refund", "arguments": {"order": "1", "amount": 500}}),
    ("call_tool", {"name": "track"}),
    ("call_tool", {"name": "nothing"}),
    ("call_tool", {"arguments": {}}),
    ("call_tool", {"name": "call_tool", "arguments": {"name": "track", "arguments": {"parcel": "1"}}}),
    ("Track", {"parcel": "1"}),
)
RULES = (
    'deny tool "track"',
    'deny user "ann"',
    'deny user "bob" tool "re*"',
    'deny agent "support" tool "refund" when amount > 100',
    'deny tool "refund" when amount > 100',
    'deny tool "refund" when order is missing',
    'deny scope "admin" access "read"',
    'deny kind "builtin" between 00:00 and 23:59',
    'allow tool "track", "search_tools"',
    'allow user "ann"',
    'allow tool "refund" when amount <= 100',
    'dry-run deny tool "*"',
)


@pytest.fixture
def app() -> App:
    """The shop, with a tool that asks a person before each call."""
    app = shop()

    @app.tool(approve=True)
    async def pay(order: str) -> str:
        """Pay for an order."""
        return f"paid {order}"

    return app


async def outcome(gateway: Gateway, who: Principal, name: str, arguments: Mapping[str, Any]) -> str:
    """What became of a call: allowed, refused or asks."""
    try:
        done = await gateway.call(who, name, arguments)
    except NotFound:
        return "refused"
    except Forbidden as error:
        return "refused" if "rule" in error.details or who.agent is not None else "asks"
    return "refused" if done.code in ("invalid_input", "not_found") else "allowed"


async def prepare(gateway: Gateway) -> None:
    """Open some tools to users, have one ask a person, and disable another."""
    tools = gateway.engine.tools
    await tools.permit("track", {"users": "read"})
    await tools.permit("pay", {"users": "execute"})
    await tools.permit("refund", {"users": "execute", "agents": {"clerk": "execute"}})
    await tools.put("closed", description="A tool.", parameters={"type": "object"}, kind="rest", active=False,
                    endpoint="https://example.com/", method="GET")  # fmt: skip


async def explained(gateway: Gateway, name: str, arguments: Mapping[str, Any] | None = None, **who: Any) -> Explanation:
    """The explanation of a call."""
    return await explain_call(gateway, await caller(gateway, **who), name, arguments)


def checks(found: Explanation) -> dict[str, bool | None]:
    """The checks of an explanation, and whether the call passes them."""
    return {step.name: step.passed for step in found.steps}


@pytest.mark.parametrize("seed", range(4))
async def test_an_explanation_says_what_becomes_of_the_call(gateway: Gateway, seed: int) -> None:
    await prepare(gateway)
    random = Random(seed)
    chosen = random.sample(RULES, random.randint(0, 5))
    default = random.choice(["allow", "allow", "deny", "dry-run deny"])
    text = "\n".join([f"default {default}", *(f"r{place}: {rule}" for place, rule in enumerate(chosen))])
    await gateway.engine.rules.put(text)
    await gateway.inventory.current()

    for fields, (name, arguments) in product(CALLERS, CALLS):
        who = await caller(gateway, **fields)
        found = await explain_call(gateway, who, name, dict(arguments))
        assert found.verdict == await outcome(gateway, who, name, dict(arguments)), (
            text,
            fields,
            name,
            arguments,
            found,
        )
        assert (found.verdict == "refused") == (False in checks(found).values())
        brief = await explain_call(gateway, who, name, dict(arguments), whole=False)
        assert brief.verdict == found.verdict


async def test_each_check_says_where_it_comes_from_and_what_to_change(gateway: Gateway) -> None:
    await prepare(gateway)

    allowed = await explained(gateway, "refund", {"order": "1"}, user="bob", scopes=MEMBER)
    by_skill = await explained(gateway, "refund", {"order": "1"}, scopes=MEMBER, agent="support")
    by_definition = await explained(gateway, "refund", user="bob", scopes=MEMBER, agent="clerk")
    asks = await explained(gateway, "refund", {"order": "1"}, scopes=MEMBER, agent="clerk")
    closed = await explained(gateway, "picture", user="bob", scopes=MEMBER)
    reader = await explained(gateway, "refund", user="bob", scopes=READER)
    missing = await explained(gateway, "Refund")
    disabled = await explained(gateway, "closed")
    invalid = await explained(gateway, "refund", {"amount": "x"})
    no_agent = await explained(gateway, "track", agent="nobody", scopes=MEMBER)

    assert allowed.verdict == "allowed"
    assert "the skill returns gives it to support" in [step.what for step in by_skill.steps]
    assert "the definition of clerk names it" in [step.what for step in by_definition.steps]
    assert (asks.verdict, checks(asks)["approval"]) == ("refused", False)
    assert closed.why == "it needs the access read, and users have none"
    assert closed.next == "`holdfast tools permit picture --users read`"
    assert reader.why.startswith("it needs the scope write")
    assert missing.why == "there is no tool 'Refund'"
    assert disabled.next == "Enable it: `holdfast tools activate closed`."
    assert "order" in invalid.why
    assert no_agent.why == "there is no agent 'nobody', or it is disabled"


async def test_the_rules_about_a_call_are_shown_with_the_one_that_decides(gateway: Gateway) -> None:
    await gateway.engine.rules.put(
        'small: deny tool "refund" when amount < 0\nlarge: deny tool "refund" when amount > 100 because "Too much."\n'
        'other: deny user "bob"\ntry: dry-run deny tool "refund"'
    )
    await gateway.inventory.current()

    found = await explained(gateway, "refund", {"order": "1", "amount": 500})
    open_ = await explained(gateway, "refund")

    assert (found.verdict, found.why) == ("refused", "the access rule large denies it. Too much.")
    assert "holdfast gateway rules show large" in found.next
    assert [(each.name, each.matches, each.decides, each.unmet) for each in found.rules] == [
        ("small", False, False, "`amount < 0` is not met"),
        ("large", True, True, ""),
        ("try", True, False, ""),
    ]
    assert open_.verdict == "depends"
    assert [each.matches for each in open_.rules] == [None, None, True]


async def test_a_call_is_explained_for_another_time(gateway: Gateway) -> None:
    await gateway.engine.rules.put('nights: deny tool "track" between 22:00 and 06:00')
    await gateway.inventory.current()
    ann = await caller(gateway)

    night = await explain_call(gateway, ann, "track", {"parcel": "1"}, at=datetime(2026, 1, 1, 23, tzinfo=UTC))
    day = await explain_call(gateway, ann, "track", {"parcel": "1"}, at=datetime(2026, 1, 1, 12, tzinfo=UTC))

    assert (night.verdict, day.verdict) == ("refused", "allowed")
    assert day.rules[0].unmet == "it does not apply at this time"


async def test_whoever_is_no_admin_learns_nothing_about_tools_that_are_hidden(gateway: Gateway) -> None:
    await gateway.engine.rules.put('no: deny user "bob" tool "track"')
    await gateway.inventory.current()
    bob = await caller(gateway, "bob", scopes=MEMBER)

    hidden = await explain_call(gateway, bob, "track", whole=False)
    closed = await explain_call(gateway, bob, "refund", whole=False)
    missing = await explain_call(gateway, bob, "trakc", whole=False)

    assert hidden.rules == []
    assert {str(each).replace(each.tool, "X") for each in (hidden, closed, missing)} == {
        str(missing).replace("trakc", "X")
    }


async def test_whoever_is_no_admin_learns_of_rules_only_what_a_refusal_says(gateway: Gateway) -> None:
    await prepare(gateway)
    await gateway.engine.rules.put(
        'large: deny tool "refund" when amount > 100 because "Too much."\n'
        'fraud: deny tool "refund" when order = "secret"\ntry: dry-run deny user "bob"'
    )
    await gateway.inventory.current()
    bob = await caller(gateway, "bob", scopes=MEMBER)

    refused = await explain_call(gateway, bob, "refund", {"order": "1", "amount": 500}, whole=False)
    allowed = await explain_call(gateway, bob, "refund", {"order": "1"}, whole=False)
    unknown = await explain_call(gateway, bob, "refund", whole=False)

    assert refused.why == "the access rule large denies it. Too much."
    assert [(each.name, each.decides, each.text) for each in refused.rules] == [("large", True, None)]
    assert (allowed.verdict, allowed.rules, unknown.verdict, unknown.rules) == ("allowed", [], "depends", [])
    assert not any(word in str((refused, allowed, unknown)) for word in ("fraud", "secret", "try", "amount >"))


async def test_nothing_is_called_or_counted_by_an_explanation(gateway: Gateway) -> None:
    await gateway.engine.rules.put('try: dry-run deny tool "refund"')
    await gateway.inventory.current()

    await explained(gateway, "refund", {"order": "1"})

    assert await gateway.engine.rules.trials() == {}
    assert await gateway.engine.executions.list(tool="refund") == []
