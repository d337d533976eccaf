"""Budgets: how many tokens a request may have, and which share of them each part gets."""

from dataclasses import dataclass
from threading import Lock

from holdfast.core.errors import InvalidInput
from holdfast.llm.tokens import TokenCounter

MESSAGE_TOKENS = 4  # tokens of a message besides its text: its role, its beginning and its end
KNOWN = 10_000  # counts in the cache


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """The tokens of a request: the model's context window without the room for its answer.

    The shares are of what instructions, tools and the messages to answer leave. The window has the rest.
    """

    total: int
    notes: float = 0.15
    memories: float = 0.15
    summary: float = 0.10
    listing: float = 0.10  # of the total, for the names of skills
    loading: float = 0.40  # of the total, for loaded skills and their tools

    def __post_init__(self) -> None:
        shares = (self.notes, self.memories, self.summary)
        skills = (self.listing, self.loading)
        if not (all(0 <= share <= 1 for share in (*shares, *skills)) and sum(shares) < 1 and sum(skills) < 1):
            raise InvalidInput(
                f"the shares {', '.join(f'{share:g}' for share in shares)} cannot be used",
                why="notes, memories and summary would leave nothing for the messages",
                next="Give each at least 0, and all together less than 1.",
            )

    @property
    def for_names(self) -> int:
        """The tokens for the names of skills."""
        return int(self.total * self.listing)

    @property
    def for_skills(self) -> int:
        """The tokens for loaded skills and their tools."""
        return int(self.total * self.loading)

    def window(self, fixed: int) -> int:
        """Return the tokens that the window has at least, if instructions and tools take `fixed` tokens."""
        return max(0, int((self.total - fixed) * (1 - self.notes - self.memories - self.summary)))


class CachedCounter:
    """A token counter with a cache of the newest counts: every step shows the conversation again."""

    def __init__(self, counter: TokenCounter, *, size: int = KNOWN) -> None:
        self._counter = counter
        self._size = size
        self._known: dict[tuple[int, int], int] = {}  # by hash and length, to keep no texts in memory
        self._changing = Lock()  # a thread counts all skills of an agent

    @property
    def name(self) -> str:
        """The name of the counter behind the cache."""
        return self._counter.name

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        key = hash(text), len(text)
        tokens = self._known.get(key)
        if tokens is None:
            tokens = self._counter.count(text)
            with self._changing:
                if len(self._known) >= self._size:
                    del self._known[next(iter(self._known))]
                self._known[key] = tokens
        return tokens
