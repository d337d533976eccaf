"""The cost of model calls, by the price table in the settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.llm.model import TokenUsage

PER = 1_000_000  # tokens that a price covers


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens: input, output, and input from the provider's cache."""

    input: float
    output: float
    cached: float


class Prices:
    """The price table: entries like `openai:gpt-5=1.25/10` or `openai:gpt-5=1.25/10/0.125`. The last entry wins."""

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._by_model = dict(map(_read, entries))

    def cost(self, model: str, usage: TokenUsage) -> float:
        """Return the cost of a call; 0 for a model without a price."""
        price = self._by_model.get(model)
        if price is None:
            return 0.0
        cached = min(usage.cached_tokens, usage.input_tokens)
        fresh = usage.input_tokens - cached
        return (fresh * price.input + cached * price.cached + usage.output_tokens * price.output) / PER


def _read(entry: str) -> tuple[str, Price]:
    model, _, numbers = entry.rpartition("=")
    input, output, *cached = map(float, numbers.split("/"))
    return model.strip(), Price(input, output, cached[0] if cached else input)
