"""`holdfast approvals`: list, approve and deny pending tool calls."""

from holdfast.cli.chat_output import format_call
from holdfast.cli.invocation import group
from holdfast.cli.operation_commands import Fields, derive, message, table

app = group("List, approve and deny tool calls of agents that wait for a person's decision.")

COLUMNS = ["id", "call", "reason", "user", "run_id", "created_at"]
REASONS = {"listed": "the agent's list", "unknown": "it may have run before"}


def _decision_text(approval: Fields) -> str:
    return f"{format_call(approval)} is {approval['state']}. The agent continues as soon as a process serves it."


derive(
    app,
    "ls",
    "list_approvals",
    table(
        COLUMNS, ids=["id", "run_id"], call=format_call, reason=lambda each: REASONS.get(each["reason"], each["reason"])
    ),
    help="List pending approvals, oldest first.",
    without=["user", "limit"],
)
derive(
    app,
    "approve",
    "decide_approval",
    message(_decision_text),
    help="Approve a tool call. The agent continues.",
    fixed={"decision": "approve"},
)
derive(
    app,
    "deny",
    "decide_approval",
    message(_decision_text),
    help="Deny a tool call. The agent sees the denial and continues without the call.",
    fixed={"decision": "deny"},
)
