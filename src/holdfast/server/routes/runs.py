"""Runs of agents: those in the caller's conversations; with the scope `admin`, all of the tenant."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec

from holdfast.agents import AgentRun
from holdfast.agents.journal import RequestedApproval, RunExecution, RunStep
from holdfast.agents.runs import RunState
from holdfast.authorization import Name
from holdfast.core.errors import NotFound
from holdfast.server.fields import Cursor, Limit
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of, page_of_items

operations = ApiOperations("runs")

MAX_STEPS = 1000

StepNumber = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class RunPage(msgspec.Struct, frozen=True):
    """Runs, newest first. Pass `cursor` to get the next page; it is null on the last page.

    `questions`: by run id, the first 200 characters of the message that the run answers.
    """

    runs: list[AgentRun]
    cursor: str | None
    questions: dict[UUID, str]


class RunStory(msgspec.Struct, frozen=True):
    """A run with its steps: each prompt and the reasons for its parts, replies, executions of tools and approvals.

    Only an admin sees the agent's instructions. For other callers, the content of system messages is `null`.
    Pass `cursor` as `since` to get the next page of steps; it is null on the last page.
    """

    run: AgentRun
    steps: Sequence[RunStep]
    executions: Sequence[RunExecution]
    asked: Sequence[RequestedApproval]
    cursor: int | None


class _StepDetails(NamedTuple):
    """A step with its executions and approvals."""

    step: RunStep
    executions: list[RunExecution]
    approvals: list[RequestedApproval]


@operations.declare("GET", "/api/runs", needs="read", errors=[NotFound])
async def list_runs(
    call: ApiCall,
    conversation: UUID | None = None,
    user: Name | None = None,
    state: RunState | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> RunPage:
    """List runs, newest first: of a conversation, of the caller, or for an admin of the tenant or of one user.

    `state`: only runs in this state, for example failed ones.
    """
    if conversation is not None:
        await call.authorization.conversation(conversation)
    runs, of_user = call.engine.agents.runs, await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[AgentRun], str | None]:
        page = await runs.list(conversation=conversation, user=of_user, state=state, limit=most, cursor=cursor)
        return page, page.cursor

    page, cursor = await page_of(read, limit=limit, start=cursor)
    return RunPage(page, cursor, await runs.questions(page))


@operations.declare("GET", "/api/runs/{id}", needs="read", errors=[NotFound])
async def get_run(call: ApiCall, id: UUID, since: StepNumber = 0) -> RunStory:
    """Get a run with its steps; with `since`, the steps after a number."""
    run = await call.authorization.run(id)
    sees = call.authorization.is_admin

    async def read(most: int, since: int | None) -> list[_StepDetails]:
        past = await call.engine.agents.past(id, since=since or 0, limit=most)
        return [
            _StepDetails(
                step if sees else _without_instructions(step),
                [each for each in past.executions if each.step == step.number],
                [each for each in past.approvals if each.step == step.number],
            )
            for step in past.steps
        ]

    details, cursor = await page_of_items(read, lambda detail: detail.step.number, limit=MAX_STEPS, start=since)
    return RunStory(
        run,
        [each.step for each in details],
        [execution for each in details for execution in each.executions],
        [approval for each in details for approval in each.approvals],
        cursor,
    )


@operations.declare("POST", "/api/runs/{id}/cancel", needs="write", errors=[NotFound])
async def cancel_run(call: ApiCall, id: UUID) -> AgentRun:
    """Cancel a run. Its text so far is kept. A run that has ended is unchanged."""
    await call.authorization.run(id)
    await call.engine.agents.cancel(id)
    return await call.engine.agents.runs.get(id)


@operations.declare("POST", "/api/runs/{id}/retry", needs="write", status=201, errors=[NotFound])
async def retry_run(call: ApiCall, id: UUID) -> AgentRun:
    """Retry a failed or cancelled run, and return the new run."""
    await call.authorization.run(id)
    return await call.engine.agents.retry(id)


def _without_instructions(step: RunStep) -> RunStep:
    messages = [
        {**message, "content": None} if message.get("role") == "system" else message
        for message in step.sent.get("messages", ())
    ]
    return replace(step, sent={**step.sent, "messages": messages})
