"""Calls models, with retries, fallbacks, time-outs and a limit on concurrent calls."""

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, Self

import msgspec

from holdfast.core.errors import ModelFailed, Overloaded
from holdfast.core.limits import LimitSettings
from holdfast.core.settings import LlmSettings
from holdfast.core.shares import current_holder, shared_by_tenant
from holdfast.llm.answer_stream import AnswerStream, AnswerTimeouts, PieceForwarder
from holdfast.llm.endpoint import Connections
from holdfast.llm.model import Model, ModelReply, ModelRequest, Shown, TokenUsage
from holdfast.llm.prices import Prices
from holdfast.llm.providers import OFFLINE, missing_key, open_model
from holdfast.llm.tokens import TokenCounter, counter_for

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.5  # seconds at most before the second attempt; doubled before each further one
LONGEST_PAUSE = 8.0
LONGEST_RETRY_AFTER = 30.0  # seconds; a model that asks for a longer wait is not retried
PER_MESSAGE = 4  # tokens of a message besides its text

SETTING = "llm.concurrency"
MAX_AGENT_MODELS = 100  # of agents that are cached: users who store agents can name any number

OFFLINE_HINT = (
    "the offline model answers, using only tools, memories and notes; set HOLDFAST_LLM__MODEL to use a language model"
)


class Caller:
    """Calls the models of the settings, or `models` instead: the first, then its fallbacks."""

    def __init__(
        self, settings: LlmSettings, *, models: Sequence[Model] = (), limits: LimitSettings | None = None
    ) -> None:
        self._settings = settings
        self._connections = Connections()
        self._models = {model.name: model for model in models}
        self._agent_models: OrderedDict[str, Model] = OrderedDict()  # the models of agents
        self._loaded: set[str] = set()  # names of the counters whose vocabulary is loaded
        self._names = [model.name for model in models] or [settings.model, *settings.fallbacks]
        self._prices = Prices(settings.prices)
        self._slots = shared_by_tenant(
            limits or LimitSettings(), "answers of models", settings.concurrency, setting=SETTING
        )
        self._failure: ModelFailed | None = None

    async def __aenter__(self) -> Self:
        # A vocabulary takes half a second to load: no turn should wait for it.
        await self.counter()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.close()

    @property
    def model_name(self) -> str:
        """The default model."""
        return self._names[0]

    @property
    def model_names(self) -> Sequence[str]:
        """The default model and its fallbacks."""
        return self._names

    def is_offline(self, model: str | None = None) -> bool:
        """Whether a model, by default the default model, is the offline model."""
        return (model or self.model_name) == OFFLINE

    @property
    def state(self) -> tuple[Literal["ok", "reduced"], str]:
        """Whether a language model answers, judging by the last call; if not, why, and what to do."""
        if self.is_offline():
            return "reduced", OFFLINE_HINT
        missing = missing_key(self.model_name, self._settings)
        if self._failure is None and missing is not None:
            return "reduced", f"the model {self.model_name} has no API key; set {missing}"
        return ("ok", self.model_name) if self._failure is None else ("reduced", str(self._failure))

    def cost(self, usage: TokenUsage, model: str | None = None) -> float:
        """Return what a call of a model, by default of the default model, costs by the prices of the settings."""
        return self._prices.cost(model or self.model_name, usage)

    async def counter(self, model: str | None = None) -> TokenCounter:
        """Return the token counter of a model. Its vocabulary is loaded in a thread."""
        counter = counter_for(model or self.model_name, self._settings)
        if counter.name not in self._loaded:
            await asyncio.to_thread(counter.count, ".")
            self._loaded.add(counter.name)
        return counter

    async def ask(
        self,
        request: ModelRequest,
        *,
        on_piece: Callable[[Shown], None] | None = None,
        on_restart: Callable[[], None] | None = None,
        model: str | None = None,
        once: bool = False,
    ) -> ModelReply:
        """Return the complete answer of `model`, or of the first fallback that answers; else raise `ModelFailed`.

        `on_piece` is called with each piece as it arrives: text, reasoning, and complete tool calls. Before the first
        piece, a failed answer is retried, and the caller does not notice. After it, the caller decides: `on_restart`,
        if given, is called, the earlier pieces are void, and the answer starts again. Without it, `ModelFailed` is
        raised, and its `retryable` says whether another try may help.

        `once`: send one request to one model, without retries and fallbacks.
        """
        forwarder = PieceForwarder(on_piece, on_restart)
        deadline = time.monotonic() + self._settings.timeout
        names = dict.fromkeys([model or self.model_name, *(() if once else self._names[1:])])
        attempts = 1 if once else self._settings.attempts
        failures: list[ModelFailed] = []
        for name in names:
            if failures:
                log.warning("%s; falling back to %s", failures[-1], name)
            try:
                reply = await self._ask(self._open(name), request, forwarder, deadline, attempts)
            except ModelFailed as failure:
                failures.append(failure)
                if len(failures) == len(names) or not forwarder.may_restart():
                    self._failure = _combine(failures)
                    raise self._failure from None
            else:
                self._failure = None
                return reply
        raise AssertionError("the last model answers or fails")

    def _open(self, name: str) -> Model:
        known = self._models if name in self._names else self._agent_models
        if name not in known:
            known[name] = open_model(name, self._settings, self._connections)
            if len(self._agent_models) > MAX_AGENT_MODELS:
                self._agent_models.popitem(last=False)
        return known[name]

    async def _ask(
        self, model: Model, request: ModelRequest, forwarder: PieceForwarder, deadline: float, attempts: int
    ) -> ModelReply:
        """Return the answer of one model, with retries."""
        settings = self._settings
        timeouts = AnswerTimeouts(settings.first_token_timeout, settings.token_timeout, deadline)
        request = msgspec.structs.replace(
            request,
            max_tokens=request.max_tokens or settings.max_output_tokens,
            temperature=settings.temperature if request.temperature is None else request.temperature,
        )
        for attempt in range(attempts):
            answer = AnswerStream()
            try:
                async with self._wait_for_slot(model.name, timeouts):
                    stop = await answer.receive(model, request, forwarder, timeouts)
            except ModelFailed as failure:
                pause = _pause(failure, attempt)
                last = attempt + 1 == attempts
                if last or not failure.retryable or pause > min(LONGEST_RETRY_AFTER, timeouts.left()):
                    raise
                if not forwarder.may_restart():
                    raise
                log.warning("%s; retrying in %.1f s", failure, pause)
                await asyncio.sleep(pause)
            else:
                usage = answer.usage or await self._estimate(model.name, request, answer)
                return ModelReply(
                    text=answer.text,
                    calls=tuple(answer.calls),
                    usage=usage,
                    reason=stop.reason,
                    model=stop.model,
                    thinking=answer.thinking,
                    cost=self._prices.cost(stop.model, usage),
                )
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _wait_for_slot(self, model: str, timeouts: AnswerTimeouts) -> AsyncGenerator[None]:
        holder = current_holder()
        try:
            await self._slots.wait(holder, timeouts.left())
        except Overloaded as error:
            raise ModelFailed(
                f"the model {model} was not called",
                model=model,
                retryable=True,
                why=f"{error.what}; {error.why}",
                next=error.next,
            ) from None
        try:
            yield
        finally:
            self._slots.release(holder)

    async def _estimate(self, model: str, request: ModelRequest, answer: AnswerStream) -> TokenUsage:
        count = (await self.counter(model)).count
        input_tokens = sum(
            PER_MESSAGE + count(message.content) + sum(count(call.name + call.arguments) for call in message.calls)
            for message in request.messages
        ) + sum(count(tool.to_json()) for tool in request.tools)
        output_tokens = count(answer.text) + count(answer.thinking)
        output_tokens += sum(count(call.name + call.arguments) for call in answer.calls)
        return TokenUsage(input_tokens, output_tokens, estimated=True)


def _pause(failure: ModelFailed, attempt: int) -> float:
    """Return the seconds before the next attempt: the server's `Retry-After`, plus back-off with jitter."""
    return failure.retry_after + random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt))


def _combine(failures: Sequence[ModelFailed]) -> ModelFailed:
    last = failures[-1]
    if len(failures) == 1:
        return last
    return ModelFailed(
        "all models failed",
        model=last.model,
        retryable=any(failure.retryable for failure in failures),
        status=last.status,
        why="; ".join(f"{failure.what} ({failure.why})" if failure.why else failure.what for failure in failures),
        next=last.next,
    )
