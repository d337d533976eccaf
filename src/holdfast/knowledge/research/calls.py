"""The model calls of one research: each answer is stored before it is used, and counts in the budget.

What is promised:

- An answer that is stored is never asked for again, whatever process goes on with the research.
- A request counts before it is sent, with the most tokens that it can use; when it is answered, with what the model
  reports.
- If the process dies, the requests that were under way count with the most that they could use. They are sent again,
  once for each death, and count again.
- A request that the model refused with an HTTP status counts as a call and without tokens. One that broke off counts
  with the most that it could use.
"""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from holdfast.bus.notifications import Notifications, channel
from holdfast.core.errors import BudgetSpent, ModelFailed
from holdfast.core.text import render, restore, store
from holdfast.knowledge.research.budget import Leave, most_prompt_tokens
from holdfast.knowledge.research.run import ResearchClaim
from holdfast.llm.caller import FIRST_PAUSE, LONGEST_PAUSE, LONGEST_RETRY_AFTER, Caller
from holdfast.llm.model import ModelReply, ModelRequest, Shown, TokenUsage
from holdfast.llm.model_calls import ModelCalls
from holdfast.llm.tokens import TokenCounter
from holdfast.postgres.database import Database, Row
from holdfast.postgres.sql import statements

UNUSABLE = frozenset({400, 413, 422})  # statuses of a model that refuses this prompt: another may work
REFUSED = "refused"

sql = statements(__name__)


class ResearchStopped(Exception):
    """The research is cancelled."""


class ResearchLost(Exception):
    """This process no longer holds the research: another goes on with it, or it was removed."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer of a model. `is_cut`: it broke off at the limit of its length. `is_refused`: there is none."""

    text: str
    reason: str

    @property
    def is_cut(self) -> bool:
        """Whether the last line may be incomplete."""
        return self.reason == "length"

    @property
    def is_refused(self) -> bool:
        """Whether the model does not answer this prompt."""
        return self.reason == REFUSED


class ResearchCalls:
    """Asks a model for one research that this process holds."""

    def __init__(
        self,
        database: Database,
        claim: ResearchClaim,
        *,
        caller: Caller,
        model_calls: ModelCalls,
        notifications: Notifications,
        attempts: int,
    ) -> None:
        self._database = database
        self._claim = claim
        self._caller = caller
        self._model_calls = model_calls
        self._notifications = notifications
        self._attempts = attempts
        self._models = list(dict.fromkeys([claim.run.model, *caller.model_names[1:]]))
        self._under_way = 0
        self._settled = asyncio.Event()  # of the next call that ends

    @property
    def is_offline(self) -> bool:
        """Whether no language model answers."""
        return self._caller.is_offline(self._claim.run.model)

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._claim.run.model

    async def counter(self) -> TokenCounter:
        """Return the token counter of the model."""
        return await self._caller.counter(self._models[0])

    async def ask(self, step: str, request: ModelRequest, leave: Leave) -> StoredAnswer | None:
        """Return the answer to a request, stored or new. None if the budget, without `leave`, has too little left."""
        assert request.max_tokens is not None
        key = _key(step, request)
        failure: ModelFailed | None = None
        for model in self._models:
            for attempt in range(self._attempts):
                outcome = await self._try(step, key, request, model, leave)
                if not isinstance(outcome, ModelFailed):
                    return outcome
                failure = outcome
                if failure.status in UNUSABLE:
                    return await self._store_refusal(key)
                if not failure.retryable or failure.retry_after > LONGEST_RETRY_AFTER or attempt + 1 == self._attempts:
                    break
                await asyncio.sleep(
                    failure.retry_after + random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt))
                )
        assert failure is not None
        raise failure

    async def once(self, name: str, find: Callable[[], Awaitable[Any]]) -> Any:
        """Return what a step found, as JSON; find and store it if this is the first time."""
        id = self._claim.run.id
        stored = await self._database.one(sql("step"), id, name)
        if stored is None:
            await self._database.run(sql("store_step"), id, self._claim.epoch, name, [await find()])  # null is no JSON
            stored = await self._database.one(sql("step"), id, name)
        if stored is None:
            raise lost_lease(id)
        return stored["result"][0]

    async def stored(self, name: str) -> Any:
        """Return what a step found, as JSON; None if it has found nothing yet."""
        row = await self._database.one(sql("step"), self._claim.run.id, name)
        return None if row is None else row["result"][0]

    async def tell(self, name: str, kind: str, **data: Any) -> None:
        """Tell those who watch of the progress, once for each name."""
        tenant, id = await self._database.tenant(), self._claim.run.id
        await self._database.run(sql("tell"), id, self._claim.epoch, name, kind, data)
        self._notifications.send(events_channel(tenant))

    async def _try(
        self, step: str, key: UUID, request: ModelRequest, model: str, leave: Leave
    ) -> StoredAnswer | ModelFailed | None:
        """Send a request once, unless its answer is stored. None if the budget is spent."""
        counter = await self._caller.counter(model)
        prompt = most_prompt_tokens(request, counter)
        begun = await self._begin(step, key, request, model, leave, prompt)
        if begun is None or isinstance(begun, StoredAnswer):
            return begun
        began = False

        def note(_: Shown) -> None:
            nonlocal began
            began = True

        self._under_way += 1
        try:
            reply = await self._model_calls.ask(
                request,
                user=self._claim.run.user,
                agent=self._claim.run.agent,
                model=model,
                input_tokens=counter.count("\n".join(message.content for message in request.messages)),
                once=True,
                on_piece=note,
            )
            return await self._settle(key, reply)
        except ModelFailed as failure:
            await self._fail(key, charged=began or (failure.status is None and failure.retryable), sent=True)
            return failure
        except BudgetSpent:
            await self._fail(key, charged=False, sent=False)
            raise
        finally:
            self._under_way -= 1
            settled, self._settled = self._settled, asyncio.Event()
            settled.set()

    async def _begin(
        self, step: str, key: UUID, request: ModelRequest, model: str, leave: Leave, prompt: int
    ) -> StoredAnswer | Row | None:
        """Reserve a call. If calls in progress have reserved the rest, wait for what they do not use."""
        run, output = self._claim.run, request.max_tokens or 0
        cost = self._caller.cost(TokenUsage(prompt, output), model)
        spare_cost = 0.0
        if run.budget.cost is not None and run.budget.tokens:
            spare_cost = run.budget.cost * min(1.0, leave.tokens / run.budget.tokens)
        while True:
            settled = self._settled
            row = await self._database.one(
                sql("begin_call"), run.id, self._claim.epoch, key, step, prompt + output, cost, leave.calls,
                leave.tokens, spare_cost,
            )  # fmt: skip
            assert row is not None
            match row["outcome"]:
                case "answered":
                    return StoredAnswer(restore(row["answer"]), row["reason"])
                case "begun":
                    return row
                case "stopped":
                    raise ResearchStopped
                case "lapsed":
                    raise lost_lease(run.id)
                case _ if row["held"] and (self._under_way or settled.is_set()):
                    await settled.wait()
                case _:
                    return None

    async def _settle(self, key: UUID, reply: ModelReply) -> StoredAnswer:
        usage, run = reply.usage, self._claim.run
        stored = await self._database.run(
            sql("settle_call"), run.id, self._claim.epoch, key, store(reply.text), reply.reason, store(reply.model),
            usage.input_tokens, usage.output_tokens, reply.cost,
        )  # fmt: skip
        if not stored:
            raise lost_lease(run.id)
        return StoredAnswer(reply.text, reply.reason)

    async def _store_refusal(self, key: UUID) -> StoredAnswer:
        """Store that the model does not answer this prompt, so that nobody asks again."""
        run = self._claim.run
        await self._database.run(sql("settle_call"), run.id, self._claim.epoch, key, "", REFUSED, "", 0, 0, 0.0)
        return StoredAnswer("", REFUSED)

    async def _fail(self, key: UUID, *, charged: bool, sent: bool) -> None:
        await self._database.run(sql("fail_call"), self._claim.run.id, self._claim.epoch, key, charged, sent)


def events_channel(tenant: object) -> str:
    """Return the channel that tells of the progress of a tenant's research."""
    return channel("research", tenant)


def lost_lease(id: UUID) -> ResearchLost:
    """Return what is raised for a research that another process holds, or that has ended."""
    return ResearchLost(f"this process no longer holds the research {id}")


def _key(step: str, request: ModelRequest) -> UUID:
    return UUID(bytes=hashlib.blake2b(step.encode() + b"\0" + render(request), digest_size=16).digest())
