"""Runs: the turns of agents; those in the caller's conversations, and for who administers the tenant all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec

from holdfast.agents import Run
from holdfast.agents.journal import Asked, Execution, Step
from holdfast.agents.runs import RunState
from holdfast.core.errors import NotFound
from holdfast.server.fields import Cursor
from holdfast.server.operations import Call, Operations
from holdfast.server.pages import listed, page_of

operations = Operations("runs")

MAX_PAGE = 200
MAX_STEPS = 1000

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
StepNumber = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class RunPage(msgspec.Struct, frozen=True):
    """Runs, the newest first, and the cursor that the next page is asked for with; null: there is none.

    `questions`: by the ids of runs, the first 200 characters of what each answers.
    """

    runs: list[Run]
    cursor: str | None
    questions: dict[UUID, str]


class RunStory(msgspec.Struct, frozen=True):
    """A run and all that it did: what the model was sent and why, what it replied, which tools ran, who was asked.

    What the agent is told before all else, by whoever runs it, is shown to an admin alone: to others as `null`.
    `cursor`: the step that the next page is asked for `since`; null: there is none.
    """

    run: Run
    steps: Sequence[Step]
    executions: Sequence[Execution]
    asked: Sequence[Asked]
    cursor: int | None


class _Told(NamedTuple):
    """A step with its tools, and who was asked about them."""

    step: Step
    executions: list[Execution]
    asked: list[Asked]


@operations.declare("GET", "/api/runs", needs="read", errors=[NotFound])
async def list_runs(
    call: Call,
    conversation: UUID | None = None,
    user: Name | None = None,
    state: RunState | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> RunPage:
    """Runs, the newest first: of a conversation, of the caller, or for an admin of the tenant or of one user.

    `state`: those alone that are in it, such as the failed ones.
    """
    if conversation is not None:
        await call.authorization.conversation(conversation)
    runs, of_user = call.engine.agents.runs, await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[Run], str | None]:
        page = await runs.list(conversation=conversation, user=of_user, state=state, limit=most, cursor=cursor)
        return page, page.cursor

    page, cursor = await page_of(read, limit=limit, start=cursor)
    return RunPage(page, cursor, await runs.questions(page))


@operations.declare("GET", "/api/runs/{id}", needs="read", errors=[NotFound])
async def get_run(call: Call, id: UUID, since: StepNumber = 0) -> RunStory:
    """A run, step by step; `since`: its steps after a number."""
    run = await call.authorization.run(id)
    sees = call.authorization.is_admin

    async def read(most: int, since: int | None) -> list[_Told]:
        past = await call.engine.agents.past(id, since=since or 0, limit=most)
        return [
            _Told(
                step if sees else _without_instructions(step),
                [each for each in past.executions if each.step == step.number],
                [each for each in past.asked if each.step == step.number],
            )
            for step in past.steps
        ]

    told, cursor = await listed(read, lambda told: told.step.number, limit=MAX_STEPS, start=since)
    return RunStory(
        run,
        [each.step for each in told],
        [execution for each in told for execution in each.executions],
        [asked for each in told for asked in each.asked],
        cursor,
    )


@operations.declare("POST", "/api/runs/{id}/cancel", needs="write", errors=[NotFound])
async def cancel_run(call: Call, id: UUID) -> Run:
    """Have a run stop; what it said so far stays. One that has ended is no error."""
    await call.authorization.run(id)
    await call.engine.agents.cancel(id)
    return await call.engine.agents.runs.get(id)


@operations.declare("POST", "/api/runs/{id}/retry", needs="write", status=201, errors=[NotFound])
async def retry_run(call: Call, id: UUID) -> Run:
    """Try a run again that failed or was cancelled; the answer is the new one."""
    await call.authorization.run(id)
    return await call.engine.agents.retry(id)


def _without_instructions(step: Step) -> Step:
    messages = [
        {**message, "content": None} if message.get("role") == "system" else message
        for message in step.sent.get("messages", ())
    ]
    return replace(step, sent={**step.sent, "messages": messages})
