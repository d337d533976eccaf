"""What is done about the calls of a reply, as far as its run has come."""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.agents.journal import RequestedApproval, RunExecution, RunHistory
from holdfast.agents.tool_calls import (
    DENIED,
    MAX_CALLS,
    RUN,
    UNKNOWN,
    CallDecision,
    CallResult,
    RequestedCall,
    decide,
    requested_calls,
)
from holdfast.core.ids import uuid7
from holdfast.llm import ModelReply, TokenUsage, ToolCall
from holdfast.skills.arguments import ArgumentRefusal
from holdfast.skills.function_tools import tool_of
from holdfast.skills.offers import offer_of
from holdfast.skills.tool import Tool


async def track(parcel: str) -> str:
    """Where a parcel is."""
    return parcel


ONCE = tool_of(track)
OFTEN = tool_of(track, idempotent=True)
CALL = RequestedCall("c1", "track", {"parcel": "1"})
REFUSED = ArgumentRefusal("track was not called.")
ASK = CallDecision(ask="unknown")


def reply(*calls: ToolCall, text: str = "") -> ModelReply:
    return ModelReply(text=text, calls=calls, usage=TokenUsage(0, 0), reason="tools", model="scripted")


def begun(status: Any, *, token: int = 1, call: str = "c1", step: int = 1) -> RunExecution:
    output = {"text": "It is there.", "result": "there"} if status in ("done", "failed") else None
    return RunExecution(uuid7(), step, call, "track", {"parcel": "1"}, status, token, output, None)


def asked(reason: Any, state: Any, comment: str | None = None, *, call: str = "c1") -> RequestedApproval:
    return RequestedApproval(1, call, reason, state, comment)


def decided(
    tool: Tool | None,
    *past: RunExecution | RequestedApproval,
    token: int = 2,
    listed: tuple[str, ...] = (),
    call: RequestedCall = CALL,
    doubtful: tuple[RunExecution, ...] = (),
) -> CallDecision:
    return decide(
        call,
        tool,
        step=1,
        token=token,
        listed=listed,
        past=RunHistory(
            executions=[each for each in past if isinstance(each, RunExecution)],
            approvals=[each for each in past if isinstance(each, RequestedApproval)],
            doubtful=doubtful,
        ),
    )


@pytest.mark.req("AGENT-01")
def test_a_call_that_was_not_made_is_made() -> None:
    assert decided(ONCE) == RUN
    assert decided(ONCE, begun("done", call="other")) == RUN
    assert decided(ONCE, begun("done", step=2)) == RUN


@pytest.mark.req("AGENT-01")
@pytest.mark.parametrize(("status", "failed"), [("done", False), ("failed", True)])
def test_what_a_call_gave_is_told_and_it_is_not_made_again(status: str, failed: bool) -> None:
    told = decided(ONCE, begun(status)).result

    assert told is not None
    assert (told.text, told.failed, told.result) == ("It is there.", failed, "there")


@pytest.mark.req("AGENT-01")
def test_a_call_that_may_have_been_made_is_made_again_only_where_that_does_no_harm() -> None:
    assert decided(OFTEN, begun("running")) == RUN
    assert decided(ONCE, begun("running")) == CallDecision(ask="unknown")
    assert decided(ONCE, begun("running"), asked("unknown", "pending")) == CallDecision(ask="unknown")
    assert decided(ONCE, begun("running"), asked("unknown", "approved")) == RUN
    assert decided(ONCE, begun("running"), RequestedApproval(1, "c1", "unknown", "approved", None, used=True)) != RUN
    told = decided(ONCE, begun("running"), asked("unknown", "denied", "No.")).result
    assert told is not None
    assert told.failed
    assert told.text == f"{UNKNOWN} They said: No."


@pytest.mark.req("AGENT-01", "EXEC-05")
def test_a_call_that_an_earlier_attempt_may_have_made_is_made_again_only_where_that_does_no_harm() -> None:
    unknown = (begun("unknown", call="other", step=3),)
    elsewhere = RequestedCall("c1", "track", {"parcel": "2"})

    assert decided(ONCE, doubtful=unknown) == CallDecision(ask="unknown")
    assert decided(ONCE, asked("unknown", "approved"), doubtful=unknown) == RUN
    assert decided(ONCE, asked("unknown", "denied"), doubtful=unknown).result is not None
    assert decided(OFTEN, doubtful=unknown) == RUN
    assert decided(ONCE, call=elsewhere, doubtful=unknown) == RUN


@pytest.mark.req("AGENT-05")
@pytest.mark.parametrize(("tool", "listed"), [(ONCE, ("track",)), (tool_of(track, approve=True), ())])
def test_a_listed_call_is_made_when_it_is_allowed(tool: Tool, listed: tuple[str, ...]) -> None:
    assert decided(tool, listed=listed) == CallDecision(ask="listed")
    assert decided(tool, asked("listed", "pending"), listed=listed) == CallDecision(ask="listed")
    assert decided(tool, asked("listed", "approved", call="other"), listed=listed) == CallDecision(ask="listed")
    assert decided(tool, asked("listed", "approved"), listed=listed) == RUN
    told = decided(tool, asked("listed", "denied"), listed=listed).result
    assert told is not None
    assert (told.text, told.failed) == (DENIED, True)


@pytest.mark.req("AGENT-05")
def test_that_a_call_was_allowed_does_not_mean_that_it_may_be_made_twice() -> None:
    allowed = asked("listed", "approved")

    assert decided(ONCE, begun("running"), allowed, listed=("track",)) == CallDecision(ask="unknown")


@pytest.mark.req("AGENT-01")
def test_a_call_that_cannot_be_made_is_told_even_where_it_is_listed() -> None:
    [unknown, wrong] = requested_calls(
        reply(ToolCall("a", "erase", "{}"), ToolCall("b", "track", "{}")), {"track": offer_of(ONCE)}, step=1
    )

    assert unknown.refusal is not None
    assert decided(ONCE, listed=("track",), call=wrong).result is not None


@pytest.mark.req("AGENT-01", "EXEC-05")
@pytest.mark.parametrize(
    ("tool", "call"),
    [
        (None, CALL),
        (None, RequestedCall("c1", "track", {}, REFUSED)),
        (ONCE, RequestedCall("c1", "track", {}, REFUSED)),
    ],
)
def test_what_was_begun_counts_although_the_tool_went_away_or_changed_since(
    tool: Tool | None, call: RequestedCall
) -> None:
    done = decided(tool, begun("done"), call=call).result
    again = decided(tool, begun("unknown"), asked("unknown", "approved"), call=call).result
    left = decided(tool, begun("running"), asked("unknown", "denied"), call=call).result

    assert (done, left) == (CallResult("It is there.", False, "there"), CallResult(UNKNOWN, True))
    assert decided(tool, replace(begun("running"), correlation_id="key"), call=call) == RUN
    assert decided(tool, begun("running"), call=call) == decided(tool, begun("unknown"), call=call) == ASK
    assert again is not None
    assert again == decided(tool, call=call).result


@pytest.mark.req("EXEC-05")
def test_what_is_unknown_is_asked_about_whatever_the_tool_says_of_itself_by_now() -> None:
    assert decided(OFTEN, begun("unknown", token=2)) == ASK
    assert decided(OFTEN, begun("unknown"), asked("unknown", "approved")) == RUN


@pytest.mark.req("AGENT-01", "TALK-05")
def test_native_calls_and_commands_are_wanted_in_order_with_ids_of_their_own() -> None:
    found = requested_calls(
        reply(ToolCall("x", "track", '{"parcel": "1"}'), ToolCall("x", "track", '{"parcel": "2"}'),
              ToolCall("", "track", '{"parcel": "3"}'), text="# Run track 4\n# Run track 5"),
        {"track": offer_of(ONCE)},
        step=3,
    )  # fmt: skip

    assert [call.arguments["parcel"] for call in found] == ["1", "2", "3", "4", "5"]
    assert len({call.id for call in found}) == 5
    assert all(call.refusal is None for call in found)


@pytest.mark.req("AGENT-01")
def test_the_calls_of_a_reply_are_bounded_and_the_same_each_time() -> None:
    many = reply(*(ToolCall("x\0y", "track", '{"parcel": "1"}') for _ in range(1000)), text="# Run track 1\n" * 100)

    found = requested_calls(many, {"track": offer_of(ONCE)}, step=1)

    assert len(found) == MAX_CALLS == len({call.id for call in found})
    assert all(call.id.isprintable() and call.id.isascii() for call in found)
    assert requested_calls(many, {"track": offer_of(ONCE)}, step=1) == found


@pytest.mark.req("TALK-05")
def test_without_tools_a_line_that_looks_like_a_command_is_text() -> None:
    assert requested_calls(reply(text="# Run track 1"), {}, step=1) == []
