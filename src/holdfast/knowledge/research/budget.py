"""The budget of a research: what its model calls may use, and how it is divided among the steps."""

import math
from dataclasses import dataclass

from holdfast.core.errors import InvalidInput
from holdfast.llm.model import ModelRequest
from holdfast.llm.tokens import ESTIMATE, PART, TokenCounter

PER_MESSAGE = 16  # tokens at most of a message besides its text: its role, its beginning and its end
PER_REQUEST = 64  # tokens at most of a request besides its messages
MOST_CALLS = 100_000
MOST_TOKENS = 10_000_000_000
SHARE = 6  # a request may use a sixth of the tokens at most, so that a small budget allows several
READ_AT_ONCE = 24_000  # tokens of chunks in one prompt: with more, models miss more
LEAST_OUTPUT = 200
# Calls of a budget from which a model plans, selects, and looks for gaps.
PLANNED_FROM, SELECTED_FROM, FOLLOWED_FROM = 4, 6, 8
BYTES = 6  # bytes of a token, at most in nearly all texts


@dataclass(frozen=True, slots=True)
class Budget:
    """What the model calls of a research may use together: requests, tokens of prompts and answers, and cost if given.

    Retries count. 0 calls: nobody asks a model, and the report consists of quotations.
    """

    calls: int = 200
    tokens: int = 2_000_000
    cost: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.calls <= MOST_CALLS or not 0 <= self.tokens <= MOST_TOKENS:
            raise InvalidInput(
                f"the budget of {self.calls} calls and {self.tokens} tokens is invalid",
                next=f"Give at most {MOST_CALLS:,} calls and {MOST_TOKENS:,} tokens, and none below 0.",
            )
        if self.cost is not None and not (self.cost > 0 and math.isfinite(self.cost)):
            raise InvalidInput(f"the budget of the cost {self.cost} is invalid", next="Give a cost above 0, or none.")

    def within(self, most: "Budget") -> "Budget":
        """Return this budget, or what `most` allows of it."""
        costs = [cost for cost in (self.cost, most.cost) if cost is not None]
        return Budget(min(self.calls, most.calls), min(self.tokens, most.tokens), min(costs, default=None))


@dataclass(frozen=True, slots=True)
class Leave:
    """What a step leaves for later steps."""

    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Division:
    """How a budget is divided. It follows from the budget and the settings alone, so that a resumed run divides alike.

    `prompt`: tokens of the text in one prompt. `output`: tokens of one answer. `request`: tokens that one request can
    use at most. `ending` is left for the report, `combining` also for combining the notes.
    """

    prompt: int
    output: int
    request: int
    ending: Leave
    combining: Leave

    @classmethod
    def of(cls, budget: Budget, *, context: int, output: int) -> "Division":
        """Divide a budget among requests to a model with a context window and a limit of output tokens."""
        output = max(1, min(output, max(LEAST_OUTPUT, budget.tokens // 50), context // 3))
        prompt = max(200, min(READ_AT_ONCE, int(0.9 * (context - output)) - 1000))
        request = min(BYTES * prompt + output, max(1, budget.tokens // SHARE))
        ending = Leave(min(1, max(0, budget.calls - 1)), request if budget.calls > 1 else 0)
        combining = Leave(
            ending.calls + budget.calls // 8, ending.tokens + (budget.tokens // 8 if budget.calls > 7 else 0)
        )
        return cls(prompt, output, request, ending, combining)

    def readable(self, budget: Budget) -> int:
        """Return about how many tokens of chunks can be read."""
        planning = (budget.calls >= PLANNED_FROM) + (budget.calls >= FOLLOWED_FROM)
        planning += budget.calls // 10 if budget.calls >= SELECTED_FROM else 0
        requests = max(0, budget.calls - self.combining.calls - planning)
        of_each = self.prompt + self.output + 600
        return min(requests, max(0, budget.tokens - self.combining.tokens) // of_each) * self.prompt


def most_prompt_tokens(request: ModelRequest, counter: TokenCounter) -> int:
    """Return how many tokens the prompt of a request can have at most.

    If the counter only estimates, each byte counts as a token: tokenizers that fall back to bytes never need more.
    """
    return PER_REQUEST + sum(PER_MESSAGE + most_tokens(message.content, counter) for message in request.messages)


def most_tokens(text: str, counter: TokenCounter) -> int:
    """Return how many tokens a text can have at most."""
    if counter.name == ESTIMATE.name:
        return len(text) if text.isascii() else len(text.encode(errors="replace"))
    return counter.count(text) + len(text) // PART + 1
