"""Research: answers from many documents, with citations. Callers see their own; with the scope `admin`, all."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated
from uuid import UUID

import msgspec
from starlette.responses import Response

from holdfast.authorization import Name
from holdfast.core.errors import InvalidInput, NotFound
from holdfast.knowledge.research import Budget, ResearchEvent, ResearchRun
from holdfast.knowledge.research.budget import MOST_CALLS, MOST_TOKENS
from holdfast.knowledge.research.research import MOST_CHARACTERS, MOST_DOCUMENTS
from holdfast.server.fields import Cursor, Limit, NotBlank, about
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.pages import page_of
from holdfast.server.streams import EVENT_STREAM, SIGN_OF_LIFE, EventStream, encode_event, follow_events, wants_stream

operations = ApiOperations("research")

WAIT = 0.8  # of the longest time that a request may take

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Calls = Annotated[int, msgspec.Meta(ge=0, le=MOST_CALLS), about("Model calls, at most.")]
Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS), about("Tokens of prompts and answers, at most.")]
Cost = Annotated[float, msgspec.Meta(gt=0, le=1e12), about("Cost by the prices of the settings, at most.")]
Question = Annotated[NotBlank, msgspec.Meta(max_length=MOST_CHARACTERS), about("What to find out.")]
Wait = Annotated[bool, about("Respond when it has ended, if a request may take so long.")]
CollectionName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class StartResearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, the documents that answer it, and a budget, which cannot exceed that of the settings.

    By default, it reads the documents of the organization and of the caller. `whole`: it reads all of their text if the
    budget allows it, not only what a search finds.
    """

    question: Question
    documents: Annotated[list[UUID], msgspec.Meta(min_length=1, max_length=MOST_DOCUMENTS)] | None = None
    collections: Annotated[list[CollectionName], msgspec.Meta(min_length=1, max_length=MOST_DOCUMENTS)] | None = None
    calls: Calls | None = None
    tokens: Tokens | None = None
    cost: Cost | None = None
    whole: bool = False
    wait: Wait = False


class ResumeResearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A larger budget, which cannot exceed that of the settings."""

    calls: Calls | None = None
    tokens: Tokens | None = None
    wait: Wait = False


class ResearchPage(msgspec.Struct, frozen=True):
    """Research, newest first, without reports. Pass `cursor` to get the next page; it is null on the last page."""

    research: list[ResearchRun]
    cursor: str | None


class ResearchDetail(msgspec.Struct, frozen=True):
    """A research. `text` is its report as Markdown, with the sources; null if it has none."""

    research: ResearchRun
    text: str | None


class ResearchEvents(msgspec.Struct, frozen=True):
    """Events of a research, oldest first. `has_ended`: there will be no more."""

    events: list[ResearchEvent]
    has_ended: bool


@operations.declare("POST", "/api/research", needs="write", status=202, errors=[NotFound])
async def start_research(call: ApiCall, body: StartResearch) -> ResearchRun:
    """Start to answer a question from documents, in the background."""
    research, authorization = call.engine.research, call.authorization
    reader = await authorization.reader()
    owners, documents = list(reader.owners), body.documents
    if documents is not None:
        owners = [(await authorization.document(id)).owner for id in documents]
    most = research.most
    budget = Budget(
        most.calls if body.calls is None else body.calls, most.tokens if body.tokens is None else body.tokens, body.cost
    )
    started = await research.start(
        body.question,
        documents=documents,
        collections=limited_collections(body.collections, reader.collections),
        owners=owners,
        user=call.principal.user,
        agent=call.principal.agent,
        budget=budget.within(most),
        whole=body.whole,
    )
    return await _waited(call, started) if body.wait else started


@operations.declare("GET", "/api/research", needs="read", errors=[NotFound])
async def list_research(
    call: ApiCall,
    user: Annotated[Name | None, about("Only research of this user.")] = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> ResearchPage:
    """List research, newest first."""
    of_user = await call.authorization.users(user)

    async def read(most: int, cursor: str | None) -> tuple[list[ResearchRun], str | None]:
        agent = call.authorization.asks_as
        page = await call.engine.research.list(user=of_user, agent=agent, limit=most, cursor=cursor)
        return page, page.cursor

    return ResearchPage(*await page_of(read, limit=limit, start=cursor))


@operations.declare("GET", "/api/research/{id}", needs="read", errors=[NotFound])
async def get_research(call: ApiCall, id: UUID) -> ResearchDetail:
    """Get a research, with its report when it is done."""
    run = await call.authorization.research(id)
    return ResearchDetail(run, None if run.report is None else run.report.text)


@operations.declare("GET", "/api/research/{id}/events", needs="read", errors=[NotFound], response_format=EVENT_STREAM)
async def read_research_events(
    call: ApiCall, id: UUID, since: Seq = 0, limit: Limit = 200
) -> ResearchEvents | Response:
    """List the events of a research after a number; with `Accept: text/event-stream`, also stream new ones.

    To resume a stream that broke off, send the id of its last event in the header `Last-Event-ID`.
    """
    run = await call.authorization.research(id)
    if wants_stream(call.request):
        last = call.request.headers.get("last-event-id")
        if last is not None:
            if not last.isascii() or not last.isdigit():
                raise InvalidInput(f"the event id {last[:50]!r} is invalid", next="Send the id of an event.")
            since = min(int(last), 2**31 - 1)
        call.slot.stay(None)
        return EventStream(_stream_events(call, id, since))
    found = await call.engine.research.past_events(id, after=since, limit=limit)
    return ResearchEvents(list(found), run.has_ended and len(found) < limit)


@operations.declare("POST", "/api/research/{id}/cancel", needs="write", errors=[NotFound])
async def cancel_research(call: ApiCall, id: UUID) -> ResearchRun:
    """Cancel a research. Its answers are kept. A research that has ended is unchanged."""
    await call.authorization.research(id)
    await call.engine.research.cancel(id)
    return await call.engine.research.get(id)


@operations.declare("POST", "/api/research/{id}/resume", needs="write", errors=[NotFound])
async def resume_research(call: ApiCall, id: UUID, body: ResumeResearch) -> ResearchRun:
    """Resume a research that failed or was cancelled: it asks for no answer again that it has."""
    run, research = await call.authorization.research(id), call.engine.research
    calls = run.budget.calls if body.calls is None else body.calls
    budget = Budget(calls, run.budget.tokens if body.tokens is None else body.tokens)
    resumed = await research.resume(id, budget=budget.within(research.most))
    return await _waited(call, resumed) if body.wait else resumed


@operations.declare("DELETE", "/api/research/{id}", needs="write", status=204, errors=[NotFound])
async def remove_research(call: ApiCall, id: UUID) -> None:
    """Remove a research with its report and answers."""
    await call.authorization.research(id)
    await call.engine.research.remove(id)


def limited_collections(asked: list[str] | None, allowed: "tuple[str, ...] | None") -> list[str] | None:
    """Return the collections that are read: those that were asked for, of those that the caller may read."""
    if allowed is None:
        return asked
    return [name for name in allowed if asked is None or name in asked]


async def _waited(call: ApiCall, run: ResearchRun) -> ResearchRun:
    """Return a research when it has ended, or as it is when the request has to end."""
    return await call.engine.research.wait(run.id, timeout=WAIT * call.engine.config.server.request_timeout)


async def _stream_events(call: ApiCall, id: UUID, since: int) -> AsyncGenerator[bytes]:
    async with (
        aclosing(call.engine.research.events(id, after=since)) as watch,
        aclosing(follow_events(call, watch, stops=True)) as events,
    ):
        async for event in events:
            yield SIGN_OF_LIFE if event is None else encode_event(event.kind, str(event.seq), event)
