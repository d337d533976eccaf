"""Budgets: how many tokens a request may have, and who may take which share of them."""

from dataclasses import dataclass
from threading import Lock

from holdfast.core.errors import InvalidInput
from holdfast.llm.tokens import TokenCounter

MESSAGE_TOKENS = 4  # what a message costs beside its text: its role, its beginning and its end
KNOWN = 10_000  # counts that are kept


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may have: the model's window without what its answer needs.

    The shares are of what instructions, tools and the message in question leave; the window has what they leave.
    """

    total: int
    notes: float = 0.15
    memories: float = 0.15
    summary: float = 0.10
    listing: float = 0.10  # of all, for the names of skills
    loading: float = 0.40  # of all, for those that are loaded and their tools

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
        """What the names of skills may take."""
        return int(self.total * self.listing)

    @property
    def for_skills(self) -> int:
        """What skills may take that are loaded, with their tools."""
        return int(self.total * self.loading)

    def window(self, fixed: int) -> int:
        """What the window has at least, when instructions and tools take `fixed`."""
        return max(0, int((self.total - fixed) * (1 - self.notes - self.memories - self.summary)))


class KnownCounts:
    """A counter that keeps its counts, the newest: a conversation is shown again at every step."""

    def __init__(self, counter: TokenCounter, *, size: int = KNOWN) -> None:
        self._counter = counter
        self._size = size
        self._known: dict[tuple[int, int], int] = {}  # by hash and length: the texts themselves would be kept alive
        self._changing = Lock()  # all skills of an agent are counted in a thread

    @property
    def name(self) -> str:
        """As the counter is called that it asks."""
        return self._counter.name

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        key = hash(text), len(text)
        tokens = self._known.get(key)
        if tokens is None:
            tokens = self._counter.count(text)
            with self._changing:
                if len(self._known) >= self._size:
                    del self._known[next(iter(self._known))]
                self._known[key] = tokens
        return tokens
