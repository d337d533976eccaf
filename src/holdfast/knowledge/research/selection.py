"""Selection: which chunks a research reads, and in which order. `readable`: tokens that the budget allows to read."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from holdfast.knowledge.research.budget import Budget, Division
from holdfast.knowledge.research.corpus import ChunkSize, CorpusSize
from holdfast.knowledge.research.passages import Passage
from holdfast.knowledge.research.queries import parse_numbers

CANDIDATES = 40  # in one prompt
BYTES_OF_CANDIDATE = 700  # at most, in nearly all texts
LEAST_CANDIDATES, MOST_CANDIDATES = 20, 1000
MOST_FOUND = 200  # chunks that one query finds
FIRST_ROUND = 0.65  # of what can be read; the rest is for follow-up queries
MEAN_TOKENS = 400  # of a chunk
CHARACTERS = 12  # of a token, at most in nearly all texts


def may_fit_whole(size: CorpusSize, readable: int) -> bool:
    """Return whether a budget may suffice to read all chunks, so that it is worth listing them."""
    return size.characters <= CHARACTERS * readable


def fits_whole(sizes: Iterable[ChunkSize], readable: int) -> bool:
    """Return whether a budget suffices to read all chunks."""
    return sum(each.tokens for each in sizes) * 1.1 <= readable


def found_by_query(readable: int, queries: int) -> int:
    """Return how many chunks each query finds: all together about twice as many as can be read."""
    return max(LEAST_CANDIDATES, min(MOST_FOUND, 2 * readable // MEAN_TOKENS // max(1, queries)))


def most_candidates(readable: int) -> int:
    """Return how many chunks are candidates: about twice as many as can be read."""
    return max(LEAST_CANDIDATES, min(MOST_CANDIDATES, 2 * readable // MEAN_TOKENS))


def most_spread(readable: int) -> int:
    """Return how many chunks are taken from all parts of a text that cannot be read whole."""
    return max(1, readable // MEAN_TOKENS // 3)


def most_followed(readable: int) -> int:
    """Return how many chunks one round of follow-up queries adds."""
    return max(5, int((1 - FIRST_ROUND) / 2 * readable / MEAN_TOKENS))


def pages(candidates: Sequence[Passage], budget: Budget, division: Division) -> list[Sequence[Passage]]:
    """Return candidates in lists for one prompt each. At most a tenth of the calls choose among them."""
    most = max(1, budget.calls // 10)
    size = max(5, min(CANDIDATES, (division.request - division.output) // 2 // BYTES_OF_CANDIDATE))
    return [candidates[start : start + size] for start in range(0, len(candidates), size)][:most]


def choose(answers: Sequence[str | None], shown: Sequence[Sequence[Passage]], rest: Sequence[Passage]) -> list[Passage]:
    """Return the chosen candidates: the best of each list first, then those that no list shows.

    A list without an answer keeps its order.
    """
    ranked: list[Sequence[Passage]] = []
    for answer, page in zip(answers, shown, strict=True):
        numbered = {passage.number: passage for passage in page}
        numbers = parse_numbers(answer or "", 2 * len(page))
        chosen = [numbered[number] for number in numbers if number in numbered]
        ranked.append(page if not chosen and (answer is None or "none" not in answer.lower()) else chosen)
    longest = max(map(len, ranked), default=0)
    return [*(each[rank] for rank in range(longest) for each in ranked if rank < len(each)), *rest]


def within(passages: Iterable[Passage], tokens: int, sizes: Mapping[UUID, int]) -> list[Passage]:
    """Return the first passages, with at most so many tokens; at least one."""
    taken: list[Passage] = []
    for passage in passages:
        tokens -= sizes[passage.chunk]
        if taken and tokens < 0:
            break
        taken.append(passage)
    return taken
