"""The state of a request opens for that request alone, and for a time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from holdfast.access.principals import USER_SCOPES, Principal
from holdfast.core.ids import TenantId
from holdfast.gateway.mcp.request_state import Origin, RequestStates, answers_of
from holdfast.gateway.policies.approval import QUESTION
from holdfast.mcp.protocol import INVALID_PARAMS, McpError

NOW = datetime(2026, 8, 1, tzinfo=UTC)
ANN = Principal(TenantId(UUID(int=1)), "ann", USER_SCOPES, "support")
ORIGIN = Origin(ANN, "tools/call", {"name": "refund", "arguments": {"order": "7", "why": "broken"}})
ANSWERS = {"sure": {"action": "accept", "content": {"reason": "half an emoji: \ud83d"}}}
ASKED = ["where"]
STATES = RequestStates(b"a secret", lifetime=timedelta(minutes=15))


@pytest.mark.req("MCP-08")
def test_a_state_opens_on_any_node_that_has_the_secret_whatever_the_order_of_the_arguments() -> None:
    elsewhere = RequestStates(b"a secret", lifetime=timedelta(minutes=15))
    again = replace(ORIGIN, params={"arguments": {"why": "broken", "order": "7"}, "name": "refund", "_meta": {}})

    sealed = STATES.seal(ORIGIN, ASKED, ANSWERS, now=NOW)

    opened = elsewhere.open(sealed, again, now=NOW + timedelta(minutes=14))
    assert (opened.questions, opened.answers, opened.until) == ({"where"}, ANSWERS, NOW + timedelta(minutes=15))


@pytest.mark.req("MCP-08")
def test_no_arguments_are_the_same_as_empty_ones() -> None:
    sealed = STATES.seal(replace(ORIGIN, params={"name": "refund"}), ASKED, ANSWERS, now=NOW)

    opened = STATES.open(sealed, replace(ORIGIN, params={"name": "refund", "arguments": {}}), now=NOW)
    assert opened.answers == ANSWERS


@pytest.mark.req("MCP-08")
def test_what_a_person_allows_counts_where_it_was_asked_and_what_was_answered_before_stays() -> None:
    said = {"action": "decline"}
    given = {"where": said, "sure": said, QUESTION: said}
    unasked, asked = [
        STATES.open(STATES.seal(ORIGIN, names, ANSWERS, now=NOW), ORIGIN, now=NOW) for names in (ASKED, [QUESTION])
    ]

    assert answers_of(given, None) == {"where": said, "sure": said}
    assert answers_of(given, unasked) == {"where": said, **ANSWERS}
    assert answers_of(given, asked) == {"where": said, QUESTION: said, **ANSWERS}


@pytest.mark.req("MCP-08")
def test_what_is_sealed_is_not_to_be_read_and_never_the_same_twice() -> None:
    once, twice = (STATES.seal(ORIGIN, ASKED, ANSWERS, now=NOW) for _ in range(2))

    assert once != twice
    assert STATES.open(once, ORIGIN, now=NOW).nonce != STATES.open(twice, ORIGIN, now=NOW).nonce
    assert "accept" not in once


@pytest.mark.req("MCP-08")
@pytest.mark.parametrize(
    "other",
    [
        replace(ORIGIN, caller=replace(ANN, user="bob")),
        replace(ORIGIN, caller=replace(ANN, tenant=TenantId(UUID(int=2)))),
        replace(ORIGIN, caller=replace(ANN, agent=None)),
        replace(ORIGIN, method="prompts/get"),
        replace(ORIGIN, params={**ORIGIN.params, "name": "track"}),
        replace(ORIGIN, params={**ORIGIN.params, "arguments": {"order": "8", "why": "broken"}}),
        replace(ORIGIN, params={"name": "refund"}),
    ],
)
def test_a_state_is_refused_for_another_user_tenant_agent_method_tool_or_other_arguments(other: Origin) -> None:
    sealed = STATES.seal(ORIGIN, ASKED, ANSWERS, now=NOW)

    with pytest.raises(McpError, match="another request or another caller") as refused:
        STATES.open(sealed, other, now=NOW)

    assert refused.value.code == INVALID_PARAMS


@pytest.mark.req("MCP-08")
def test_a_state_that_was_changed_or_made_up_is_refused() -> None:
    sealed = STATES.seal(ORIGIN, ASKED, ANSWERS, now=NOW)
    flipped = sealed[:40] + ("A" if sealed[40] != "A" else "B") + sealed[41:]
    stranger = RequestStates(b"another secret", lifetime=timedelta(minutes=15)).seal(ORIGIN, ASKED, ANSWERS, now=NOW)

    for forged in (flipped, sealed + "-TAMPERED", sealed[:-8], stranger, "", "e30=", "ä", "\ud83d", 7, None, [7]):
        with pytest.raises(McpError, match="cannot be opened"):
            STATES.open(forged, ORIGIN, now=NOW)


@pytest.mark.req("MCP-08")
def test_a_state_expires() -> None:
    sealed = STATES.seal(ORIGIN, ASKED, ANSWERS, now=NOW)

    with pytest.raises(McpError, match="has expired") as refused:
        STATES.open(sealed, ORIGIN, now=NOW + timedelta(minutes=15))

    assert refused.value.code == INVALID_PARAMS
