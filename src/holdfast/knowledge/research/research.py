"""The service for research: starts, watches, cancels and resumes it, and carries it out."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.bus.notifications import Notifications, until
from holdfast.core.cursors import Page, read_cursor, write_cursor
from holdfast.core.errors import (
    Broken,
    DatabaseAway,
    HoldfastError,
    InvalidInput,
    NotFound,
    Overloaded,
    TimedOut,
    TooLarge,
    Unavailable,
)
from holdfast.core.ids import uuid7
from holdfast.core.memory_settings import ResearchSettings
from holdfast.core.settings import LlmSettings
from holdfast.core.shares import set_holder
from holdfast.core.text import dumps, store
from holdfast.core.wires import HTTP_STATUS
from holdfast.knowledge.research.budget import Budget, Division
from holdfast.knowledge.research.calls import ResearchCalls, ResearchLost, ResearchStopped, events_channel
from holdfast.knowledge.research.corpus import ChunkSearch, Corpus, ResearchOwner, ResearchTarget, owners_of_documents
from holdfast.knowledge.research.investigation import Investigation
from holdfast.knowledge.research.report import ResearchReport
from holdfast.knowledge.research.researcher import MOST_CLAIMS, Researcher
from holdfast.knowledge.research.run import (
    ResearchClaim,
    ResearchEvent,
    ResearchRun,
    claim_of,
    run_of,
    unknown_research,
)
from holdfast.llm.caller import Caller
from holdfast.llm.model_calls import ModelCalls
from holdfast.memory import Owner, organization
from holdfast.memory.owners import Owners
from holdfast.postgres.database import Database
from holdfast.postgres.listener import Wake
from holdfast.postgres.sql import statements

MOST_CHARACTERS = 8000  # of a question
MOST_DOCUMENTS = 1000  # that a research names
EVENTS = 200  # that are read at once
EXPORTED = 20  # research that is read at once
SCOPES = ("user", "agent", "organization")
OURS = 500  # the HTTP status of internal errors

Listen = Callable[..., AbstractAsyncContextManager[Wake]]

sql = statements(__name__)
log = logging.getLogger(__name__)


class Research:
    """Answers questions from many documents, or from a document that is too long to be read at once.

    It may take minutes and many model calls, so it runs in the background and survives the end of its process. It is
    for questions that a search does not answer; conversations recall memories by search alone.
    """

    def __init__(
        self,
        database: Database,
        *,
        owners: Owners,
        search: ChunkSearch,
        caller: Caller,
        model_calls: ModelCalls,
        notifications: Notifications,
        listen: Listen,
        researcher: Researcher,
        settings: ResearchSettings,
        llm: LlmSettings,
    ) -> None:
        self._database = database
        self._owners = owners
        self._search = search
        self._caller = caller
        self._model_calls = model_calls
        self._notifications = notifications
        self._listen = listen
        self._researcher = researcher
        self._settings = settings
        self._llm = llm

    @property
    def most(self) -> Budget:
        """The budget of the settings: what research has that names none, and at most over HTTP and as a tool."""
        settings = self._settings
        return Budget(settings.calls, settings.tokens, settings.cost or None)

    async def run(
        self,
        question: str,
        *,
        documents: Sequence[UUID] | None = None,
        collections: Sequence[str] | None = None,
        owners: Sequence[Owner] | None = None,
        user: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        budget: Budget | None = None,
        whole: bool = False,
        id: UUID | None = None,
    ) -> ResearchReport:
        """Answer a question from documents, and return the report. See `start`.

        If the caller is cancelled, the research goes on: `start` with the same id, or `wait`, returns to it.
        """
        started = await self.start(
            question, documents=documents, collections=collections, owners=owners, user=user, agent=agent,
            model=model, budget=budget, whole=whole, id=id,
        )  # fmt: skip
        return report_of(await self.wait(started.id))

    async def start(
        self,
        question: str,
        *,
        documents: Sequence[UUID] | None = None,
        collections: Sequence[str] | None = None,
        owners: Sequence[Owner] | None = None,
        user: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        budget: Budget | None = None,
        whole: bool = False,
        id: UUID | None = None,
    ) -> ResearchRun:
        """Start to answer a question in the background. A repeated `id` returns the research that has it.

        By default, it reads the documents of the organization, of `user` and of `agent`; or only `documents`, or those
        in `collections`. `whole`: it reads all of their text if the budget allows it, not only what a search finds.
        Without a budget, it has that of the settings. Raise NotFound for a document that `user` may not read.
        """
        if not question.strip():
            raise InvalidInput("the question is empty", next="Ask something.")
        if len(question) > MOST_CHARACTERS:
            raise TooLarge(
                f"the question has {len(question):,} characters",
                why=f"a question may have {MOST_CHARACTERS:,}",
                next="Put long texts into a document, and ask about that.",
            )
        target = await self._target(documents, collections, owners, user, agent, whole=whole)
        budget = budget or self.most
        holder = self._researcher.id if self._researcher.has_room else None
        id = id or uuid7()
        row = await self._database.one(
            sql("start"), id, None if user is None else store(user), None if agent is None else store(agent),
            store(question), msgspec.to_builtins(target), store(model or self._caller.model_name), budget.calls,
            budget.tokens, budget.cost, holder, None if holder is None else self._researcher.lease,
        )  # fmt: skip
        if row is None:
            return await self.get(id)
        if holder is None:
            await self._database.run(sql("wake"))
        else:
            self._researcher.begin_held(await self._database.tenant(), claim_of(row))
        return run_of(row)

    async def get(self, id: UUID) -> ResearchRun:
        """Return a research, with its report when it is done."""
        row = await self._database.one(sql("get"), id)
        if row is None:
            raise unknown_research(id)
        return run_of(row)

    async def list(
        self, *, user: str | None = None, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[ResearchRun]:
        """List research, newest first, of all or of a user, without the reports; `agent` is who asked for the user."""
        before, _ = read_cursor(cursor)
        if user is None:
            rows = await self._database.all(sql("list"), before, limit + 1)
        else:
            rows = await self._database.all(
                sql("list_of_user"), before, limit + 1, store(user), None if agent is None else store(agent)
            )
        runs = [run_of(row) for row in rows[:limit]]
        return Page(runs, write_cursor(runs[-1].id) if len(rows) > limit else None)

    async def events(self, id: UUID, *, after: int = 0) -> AsyncGenerator[ResearchEvent]:
        """Yield how a research gets on, from the first event after a number, until it has ended.

        The last event has the kind `done`, `failed` or `cancelled`.
        """
        async with self._listen(events_channel(await self._database.tenant())) as woken:
            while True:
                run = await self.get(id)
                found = await self.past_events(id, after=after)
                for event in found:
                    after = event.seq
                    yield event
                if not found and run.has_ended:
                    assert run.finished_at is not None
                    yield ResearchEvent(run.events, run.state, _ending(run), run.finished_at)
                    return
                if not found:
                    await until(woken)

    async def past_events(self, id: UUID, *, after: int = 0, limit: int = EVENTS) -> Sequence[ResearchEvent]:
        """Return the events after a number that are there already, oldest first."""
        rows = await self._database.all(sql("events"), id, after, limit)
        return [ResearchEvent(row["seq"], row["kind"], row["data"], row["at"]) for row in rows]

    async def exists(self, id: UUID) -> bool:
        """Return whether there is a research with this id."""
        return await self._database.one(sql("get"), id) is not None

    async def wait(self, id: UUID, *, timeout: float | None = None) -> ResearchRun:
        """Return a research when it has ended; or as it is, after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout), aclosing(self.events(id)) as events:
                async for _ in events:
                    pass
        except TimeoutError:
            pass
        return await self.get(id)

    async def cancel(self, id: UUID) -> None:
        """Cancel a research. One that has ended is unchanged. Its answers are kept, so that it can be resumed."""
        await self.get(id)
        await self._database.run(sql("cancel"), id)
        self._researcher.stop(id)
        await self._database.run(sql("wake"))
        self._notifications.send(events_channel(await self._database.tenant()))

    async def resume(self, id: UUID, *, budget: Budget | None = None) -> ResearchRun:
        """Resume a research that failed or was cancelled, with the answers that it has; with `budget`, a larger one."""
        calls, tokens = (None, None) if budget is None else (budget.calls, budget.tokens)
        if not await self._database.run(sql("resume"), id, calls, tokens):
            run = await self.get(id)
            if run.state == "done":
                raise InvalidInput(f"the research {id} is done", next="Start another one to ask more.")
            return run
        await self._database.run(sql("wake"))
        self._researcher.wake()
        return await self.get(id)

    async def remove(self, id: UUID) -> None:
        """Remove a research with its report and all answers. One that is under way ends."""
        if not await self._database.run(sql("remove"), id):
            raise unknown_research(id)
        self._researcher.stop(id)

    async def erase(self, user: str) -> int:
        """Remove all research of a user. Return how many there were."""
        return await self._database.run(sql("erase"), store(user))

    async def export(self, user: str) -> AsyncGenerator[str]:
        """Yield all research of a user as lines of JSON, oldest first, with its report and events."""
        after = UUID(int=0)
        while rows := await self._database.all(sql("export"), store(user), after, EXPORTED):
            for row in rows:
                after = row["id"]
                yield dumps({"kind": "research", **msgspec.to_builtins(run_of(row)), "told": row["told"]})

    # Carried out by the researcher

    async def carry_out(self, claim: ResearchClaim) -> None:
        """Carry out a research that this process holds, and store how it ended."""
        run = claim.run
        set_holder(await self._database.tenant(), run.user)
        if claim.stop:
            return await self.end_cancelled(claim)
        calls = ResearchCalls(
            self._database,
            claim,
            caller=self._caller,
            model_calls=self._model_calls,
            notifications=self._notifications,
            attempts=self._llm.attempts,
        )
        try:
            if claim.claims > MOST_CLAIMS:
                raise Unavailable(
                    "the research was given up",
                    why=f"{MOST_CLAIMS} processes have ended while they worked on it",
                    next="Check the logs of the servers, then resume it.",
                )
            division = msgspec.convert(await calls.once("division", self._division_of(run)), Division)
            corpus = Corpus(self._database, self._owners, self._search, run.target)
            report = await Investigation(
                run, corpus, calls, division=division, parallel=self._settings.parallel
            ).report()
        except ResearchStopped:
            await self.end_cancelled(claim)
        except HoldfastError as error:
            if _is_passing(error):
                raise
            await self._end(claim, "failed", error=_error_data(error, run.id))
        except ResearchLost:
            raise
        except Exception:
            log.exception("internal error: the research %s failed", run.id)
            broken = Broken("the research failed by an internal error")
            await self._end(claim, "failed", error=_error_data(broken, run.id))
        else:
            used = await self.get(run.id)
            report = msgspec.structs.replace(report, calls=used.calls, tokens=used.tokens, cost=used.cost)
            await self._end(claim, "done", report=msgspec.to_builtins(report))

    async def end_cancelled(self, claim: ResearchClaim) -> None:
        """Store that a research was cancelled."""
        await self._end(claim, "cancelled")

    async def _end(
        self,
        claim: ResearchClaim,
        state: Literal["done", "failed", "cancelled"],
        *,
        report: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        await self._database.run(sql("finish"), claim.run.id, claim.epoch, state, report, error)
        self._notifications.send(events_channel(await self._database.tenant()))

    def _division_of(self, run: ResearchRun) -> "Callable[[], Any]":
        """Return what divides the budget: it is stored, as a process with other settings may go on."""

        async def divide() -> Any:
            llm = self._llm
            return msgspec.to_builtins(
                Division.of(run.budget, context=llm.context_tokens, output=llm.max_output_tokens)
            )

        return divide

    async def _target(
        self,
        documents: Sequence[UUID] | None,
        collections: Sequence[str] | None,
        owners: Sequence[Owner] | None,
        user: str | None,
        agent: str | None,
        *,
        whole: bool,
    ) -> ResearchTarget:
        """Return what a research reads. Raise NotFound for documents that it may not read."""
        if documents is not None and not 0 < len(documents) <= MOST_DOCUMENTS:
            raise InvalidInput(
                f"a research cannot name {len(documents)} documents",
                next=f"Name 1 to {MOST_DOCUMENTS}, or none to read all.",
            )
        chosen = [*(owners or ())]
        if owners is None:
            chosen = [organization()]
            chosen += [Owner("user", user)] if user is not None else []
            chosen += [Owner("agent", agent, agent)] if agent is not None else []
            if documents is not None:
                chosen = [*await self._owners_of(documents, user)]
        for owner in chosen:
            if owner.scope not in SCOPES:
                raise InvalidInput(f"{owner.scope!r} has no documents", next=f"Name one of {', '.join(SCOPES)}.")
        return ResearchTarget(
            tuple(ResearchOwner(owner.scope, owner.name) for owner in dict.fromkeys(chosen)),
            None if collections is None else tuple(collections),
            None if documents is None else tuple(dict.fromkeys(documents)),
            whole,
        )

    async def _owners_of(self, documents: Sequence[UUID], user: str | None) -> Sequence[Owner]:
        found = await owners_of_documents(self._database, self._owners, documents)
        for id in documents:
            owner = found.get(id)
            if owner is None or (user is not None and owner.scope == "user" and owner.name != user):
                raise NotFound(f"there is no document {id}", next="`holdfast knowledge ls` lists documents.")
        return tuple(found.values())


def report_of(run: ResearchRun) -> ResearchReport:
    """Return the report of a research that has ended. Raise its error if it failed or was cancelled."""
    if run.report is not None:
        return run.report
    if run.state == "cancelled":
        raise Unavailable(f"the research {run.id} was cancelled", next="Resume it, or start another one.")
    error = run.error or {}
    raise Unavailable(
        f"the research {run.id} failed",
        why=error.get("message", ""),
        next="Resume it when the cause is mended: it keeps the answers that it has.",
        cause=error.get("code", ""),
    )


def _ending(run: ResearchRun) -> dict[str, Any]:
    data: dict[str, Any] = {"calls": run.calls, "tokens": run.tokens, "cost": run.cost}
    return data if run.error is None else {**data, "error": run.error}


def _is_passing(error: HoldfastError) -> bool:
    """Return whether an error comes from the database and may pass, so that the research goes on later."""
    if isinstance(error, DatabaseAway | Overloaded | TimedOut):
        return True
    return "sqlstate" in error.details and not isinstance(error, InvalidInput | TooLarge)


def _error_data(error: HoldfastError, id: UUID) -> dict[str, Any]:
    """Return what is stored of an error. The details of internal errors only go to the log."""
    if HTTP_STATUS[error.code] == OURS:
        log.error("the research %s failed: %s", id, error)
        error = Broken(error.what, next=f"The server's log says more: look for the research {id}.")
    return {"code": error.code, "message": str(error), "what": error.what, "why": error.why, "next": error.next}
