"""Model calls: each reserves what it may spend of the tenant's budgets, and is settled with what it used.

This is the one place where agents and research call models, so that budgets and the usage of models cover every call.
"""

import asyncio
import logging
from collections.abc import Callable

from holdfast.core.errors import HoldfastError
from holdfast.llm.caller import Caller
from holdfast.llm.model import ModelReply, ModelRequest, Shown, TokenUsage
from holdfast.quotas import Quotas, Reservation, Spend

OUTPUT_ESTIMATE = 1000  # tokens of an answer at most, for the estimate: few answers are as long as they may be

log = logging.getLogger(__name__)


class ModelCalls:
    """Calls models for one tenant, within its budgets."""

    def __init__(self, caller: Caller, quotas: Quotas) -> None:
        self._caller = caller
        self._quotas = quotas

    async def ask(
        self,
        request: ModelRequest,
        *,
        user: str | None,
        agent: str | None,
        model: str | None,
        input_tokens: int,
        once: bool = False,
        on_piece: Callable[[Shown], None] | None = None,
        on_restart: Callable[[], None] | None = None,
    ) -> ModelReply:
        """Return the answer of a model, as `Caller.ask` does. Raise BudgetSpent if a budget is used up.

        `input_tokens` are those of the request, as they were counted for it. `once`: send one request to one model.
        """
        budgets = await self._quotas.budgets()
        estimate = self._estimate(model, input_tokens, request.max_tokens)
        reservation = await budgets.reserve(estimate, user=user, agent=agent)
        has_begun = False

        def note(piece: Shown) -> None:
            nonlocal has_begun
            has_begun = True
            if on_piece is not None:
                on_piece(piece)

        try:
            reply = await self._caller.ask(request, on_piece=note, on_restart=on_restart, model=model, once=once)
        except BaseException as error:
            # An answer that was broken off may have been charged for, and nobody says how much.
            is_free = isinstance(error, HoldfastError) and not has_begun
            await self._settle(reservation, Spend(0, 0) if is_free else None)
            raise
        usage = reply.usage
        if not self._caller.is_offline(model):
            self._quotas.count(
                user=user,
                agent=agent,
                model=reply.model,
                input=usage.input_tokens,
                output=usage.output_tokens,
                cost=reply.cost,
            )
        await self._settle(reservation, Spend(usage.input_tokens + usage.output_tokens, reply.cost))
        return reply

    def _estimate(self, model: str | None, input_tokens: int, max_tokens: int | None) -> Spend:
        output = min(OUTPUT_ESTIMATE, max_tokens or OUTPUT_ESTIMATE)
        cost = self._caller.cost(TokenUsage(input_tokens, output), model)
        return Spend(input_tokens + output, cost)

    async def _settle(self, reservation: Reservation | None, actual: Spend | None) -> None:
        """Settle a reservation, even if the turn is cancelled meanwhile. If it fails, the estimate stays spent."""
        if reservation is None:
            return
        await asyncio.shield(asyncio.create_task(self._try_to_settle(reservation, actual), name="settling a budget"))

    async def _try_to_settle(self, reservation: Reservation, actual: Spend | None) -> None:
        try:
            await (await self._quotas.budgets()).settle(reservation, actual)
        except HoldfastError as error:
            log.warning("could not settle a budget, so that the estimate counts: %s", error)
