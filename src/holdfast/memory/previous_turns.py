"""Previous turns, for vectors that include the turn before.

When the previous turn changes, the turn is embedded again. Two turns that are written concurrently do not see each
other: the vector of the later one then lacks the earlier one, until the previous turn changes.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from holdfast.core.text import restore, store
from holdfast.memory.drafts import Draft, text_with_author, with_previous_turn
from holdfast.memory.owners import OwnerIds
from holdfast.postgres.database import Row, Statements
from holdfast.postgres.sql import statements

sql = statements(__name__)


async def draft_texts(run: Statements, ids: OwnerIds, drafts: Sequence[Draft]) -> list[str]:
    """Return the texts to embed for drafts: each with its previous turn, from the drafts or from the database."""
    placed = [(n, store(d.conversation), d.seq) for n, d in enumerate(drafts) if d.conversation and d.seq is not None]
    columns = [list(column) for column in zip(*placed, strict=True)] or [[], [], []]
    rows = await run.all(sql("previous_turns"), ids.scope, ids.id, *columns)
    previous: dict[int, tuple[int, str]] = {row["place"]: (row["seq"], text_of(row)) for row in rows}
    conversations: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for n, conversation, seq in placed:
        conversations[conversation].append((seq, n))
    for turns in conversations.values():
        turns.sort()
        for (earlier, m), (later, n) in pairwise(turns):
            if earlier < later and (n not in previous or previous[n][0] < earlier):
                previous[n] = earlier, text_with_author(drafts[m].content, drafts[m].author)
    return [
        with_previous_turn(text_with_author(draft.content, draft.author), previous[n][1] if n in previous else None)
        for n, draft in enumerate(drafts)
    ]


async def stored_texts(run: Statements, rows: Sequence[Row]) -> list[str]:
    """Return the texts to embed for stored memories: each with its previous turn."""
    previous: dict[int, str] = {}
    owners: defaultdict[tuple[str, UUID], list[int]] = defaultdict(list)
    for n, row in enumerate(rows):
        if row["conversation"] is not None and row["seq"] is not None:
            owners[row["scope"], row["owner"]].append(n)
    for (scope, owner), places in owners.items():
        conversations, seqs = [rows[n]["conversation"] for n in places], [rows[n]["seq"] for n in places]
        found = await run.all(sql("previous_turns"), scope, owner, places, conversations, seqs)
        previous |= {row["place"]: text_of(row) for row in found}
    return [with_previous_turn(text_of(row), previous.get(n)) for n, row in enumerate(rows)]


def text_of(row: Row) -> str:
    """Return the text of a stored memory, with its author."""
    author = row["author"]
    return text_with_author(restore(row["content"]), None if author is None else restore(author))
