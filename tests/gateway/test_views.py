"""Who sees which tool, over random permissions and grants."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.access.principals import Principal
from holdfast.core.ids import TenantId
from holdfast.execution.outcomes import Outcome
from holdfast.gateway.policies.arguments import ArgumentPolicy
from holdfast.gateway.policies.calls import GatewayCall
from holdfast.gateway.views import CallerView, Listed, ViewKey, sees, sees_own, shown_name
from holdfast.skills.offers import offer_of
from holdfast.skills.permissions import CAPS, refusal_reason
from holdfast.skills.tool import LEVELS, Tool, ToolEntry

AGENTS = ("support", "Support", "clerk")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "shop": {"type": "string"}},
    "additionalProperties": False,
}
ANN = Principal(TenantId(UUID(int=1)), "ann", frozenset({"read", "write"}))

caps = st.sampled_from(CAPS)
permissions = st.fixed_dictionaries(
    {}, optional={"default": caps, "users": caps, "agents": st.dictionaries(st.sampled_from(AGENTS), caps)}
)
scopes = st.frozensets(st.sampled_from(["read", "write"]))
whos = st.one_of(
    st.builds(ViewKey, st.sampled_from(["admin", "user"]), st.none(), scopes),
    st.builds(ViewKey, st.just("agent"), st.sampled_from(AGENTS), scopes),
)


def entry(access: Any, given: dict[str, Any], name: str = "pay") -> ToolEntry:
    """A tool that is registered."""
    tool = Tool(name, "Pay.", SCHEMA, access=access, id=UUID(int=7))
    return ToolEntry(tool, UUID(int=7), 1, "1", "", "", "db", None, None, given, True, 0, 0, None, NOW, NOW, "ann")


@pytest.mark.req("MCP-07")
@given(access=st.sampled_from(LEVELS), said=permissions, who=whos, granted=st.booleans())
def test_a_tool_is_seen_by_nobody_who_may_not_call_it(
    access: Any, said: dict[str, Any], who: ViewKey, granted: bool
) -> None:
    seen = sees(entry(access, said), who, {"pay"} if granted else ())

    if not seen:
        return
    assert ("read" if access == "read" else "write") in who.scopes
    if who.agent is not None:
        assert refusal_reason(access, "execute", said, who.agent) == ""
        assert granted or who.agent in said.get("agents", {}) or "default" in said
    elif who.kind == "user":
        assert CAPS.index(said.get("users", "none")) >= CAPS.index(access)


@pytest.mark.req("MCP-07")
@given(access=st.sampled_from(LEVELS), who=whos)
def test_a_tool_that_is_denied_to_all_agents_is_seen_by_none_whoever_granted_it(access: Any, who: ViewKey) -> None:
    denied = {"default": "none", "users": "execute"}

    assert not (who.agent is not None and sees(entry(access, denied), who, {"pay"}))


@pytest.mark.req("MCP-07")
@given(name=st.sampled_from(["pay", "Pay", "PAY", "pay ", "pay\u200b", "\uff50\uff41\uff59", "p\u0430y"]))
def test_a_tool_goes_by_its_name_and_by_no_variant_of_it(name: str) -> None:
    tool = entry("read", {}).tool
    view = CallerView(ViewKey("admin"), (Listed(shown_name(tool), "", offer_of(tool)),))

    assert (name in view.by_name) == (name == "pay")


@pytest.mark.req("MCP-07")
@given(given=st.dictionaries(st.sampled_from(["order", "shop"]), st.text(max_size=5)))
async def test_an_argument_that_a_skill_fixes_is_what_it_is_whatever_was_sent(given: dict[str, str]) -> None:
    listed = Listed("pay", "", offer_of(entry("read", {}).tool, {"arguments": {"shop": "Cologne"}}))
    called: list[GatewayCall] = []

    async def proceed(call: GatewayCall) -> Outcome:
        called.append(call)
        return Outcome("done", "", None, None, 0.0)

    await ArgumentPolicy().apply(GatewayCall(listed, given, ANN, CallerView(ViewKey("admin"), (listed,)), 1.0), proceed)

    assert called[0].arguments["shop"] == "Cologne"
    assert "shop" not in listed.offer.shown.parameters["properties"]


@pytest.mark.req("RPC-04")
def test_a_service_is_shown_by_its_method_with_dots_and_goes_by_the_method_too() -> None:
    tool = Tool("create_order", "Create.", SCHEMA, service="shop.example/orders/create/1.0.0")
    view = CallerView(ViewKey("admin"), (Listed(shown_name(tool), "", offer_of(tool)),))

    assert [each.name for each in view.tools] == ["shop.example.orders.create.1.0.0"]
    assert {"shop.example/orders/create/1.0.0", "create_order"} < {*view.by_name}


@pytest.mark.req("MCP-09")
@given(who=whos)
def test_whoever_only_reads_sees_none_of_the_engines_own_tools_that_write(who: ViewKey) -> None:
    writing = Tool("remember", "", SCHEMA, access="write")

    assert not sees_own(writing, who) or "write" in who.scopes
