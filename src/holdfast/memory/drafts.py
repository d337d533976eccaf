"""Drafts: memories to store, validated and converted to rows."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.core.errors import InvalidInput, TooLarge
from holdfast.core.ids import uuid7
from holdfast.core.names import stored_name
from holdfast.core.text import dumps, store
from holdfast.core.words import author_terms, terms
from holdfast.embeddings.language import language_of
from holdfast.memory.dates import mentions_time
from holdfast.memory.graph.extraction import graph_of
from holdfast.memory.memory import TRUSTS, Trust
from holdfast.memory.owners import ExactOwner, Owner, OwnerIds, Scope, exact_owner

MAX_CONTENT_BYTES = 64 * 1024  # a memory is a short text, not a document
SHORT_TURN = 400  # characters; a longer turn is embedded without the previous one
LONGEST_TTL = timedelta(days=365_000)
LEAST_IMPORTANCE = 1.2e-38  # the smallest value that a `real` column can tell from 0

ROLES = frozenset(
    {"user", "human", "assistant", "ai", "agent", "model", "bot", "system", "tool", "developer", "用户", "助手"}
)
TYPES: dict[Scope, str] = {"session": "turn", "user": "fact", "agent": "learning", "organization": "knowledge"}


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory to store. Only the content is required.

    `once`: a repetition of the sentence in any place, by the same author and with the same type and trust, is the same
    memory. Letter case, spaces and final full stops and exclamation marks are ignored.
    """

    content: str
    type: str | None = None
    importance: float = 1.0
    ttl: timedelta | float | None = None
    trust: Trust = "user"
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: UUID | str | None = None
    key: str | None = None
    conversation: str | None = None
    seq: int | None = None
    author: str | None = None
    at: datetime | None = None
    once: bool = False

    def __post_init__(self) -> None:
        _check_content(self.content)
        check_importance(self.importance)
        if self.trust not in TRUSTS:
            raise InvalidInput(f"the trust {self.trust!r:.100} is unknown", next=f"Use one of {', '.join(TRUSTS)}.")
        check_metadata(self.metadata)
        if self.author is not None:
            stored_name("author", self.author)
        _check_seq(self.seq)
        if self.seq is not None and self.conversation is None:
            raise InvalidInput(
                "`seq` is set without `conversation`", next="Pass the conversation that `seq` belongs to."
            )
        check_moment(self.at)
        parse_ttl(self.ttl)

    @classmethod
    def of(cls, value: "Draft | Mapping[str, Any] | str") -> "Draft":
        """Return a draft from a draft, a mapping with its fields, or a text."""
        if isinstance(value, Draft):
            return value
        if isinstance(value, str):
            return cls(value)
        if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"{value!r:.100} is not a memory", next="Pass its text, or a mapping with `content`.")
        names = [each.name for each in fields(cls)]
        for name in value:
            if name not in names:
                raise InvalidInput(f"a memory has no field {name!r:.100}", next=f"Use the fields {', '.join(names)}.")
        if "content" not in value:
            raise InvalidInput("the memory has no `content`", next="Pass its text as `content`.")
        return cls(**value)


def item_of(draft: Draft, owner: Owner, ids: OwnerIds) -> dict[str, Any]:
    """Return a draft as a row of `memory`, and what it names as `graph`. The database fills in omitted columns."""
    item = {
        **analyze(draft.content, draft.author),
        "scope": ids.scope,
        "id": uuid7(),
        "owner": ids.id,
        "agent_id": ids.agent,
        "user_id": ids.user,
        "type": stored_name("type", draft.type or TYPES[owner.scope]),
        "importance": stored_importance(draft.importance),
        "trust": draft.trust,
        "metadata": msgspec.Raw(dumps(dict(draft.metadata)).encode()),
        "source": None if draft.source is None else stored_name("source", str(draft.source)),
        "key": None if draft.key is None else stored_name("key", draft.key),
        "conversation": None if draft.conversation is None else stored_name("conversation", draft.conversation),
        "seq": draft.seq,
        "author": None if draft.author is None else stored_name("author", draft.author),
        "author_terms": [] if draft.author is None else author_terms(draft.author),
        "by_owner": is_by_owner(draft.author, owner),
        "graph": named_by(draft.content, ids.scope),
        "said_at": None if draft.at is None else with_time_zone(draft.at).astimezone(UTC),
    }
    return {**item, "digest": repeat_digest_of(ids, item) if draft.once else digest_of(ids, item)}


def items_of(drafts: Sequence[tuple[Owner, Draft]], ids: Mapping[ExactOwner, OwnerIds]) -> list[dict[str, Any]]:
    """Return drafts as rows, with their terms encoded as JSON, which takes half the memory."""
    items = [item_of(draft, owner, ids[exact_owner(owner)]) for owner, draft in drafts]
    for item in items:
        item["terms"] = msgspec.Raw(msgspec.json.encode(item["terms"]))
    return items


def length_of(owner_and_draft: tuple[Owner, Draft]) -> int:
    """Return the number of characters of a draft."""
    return len(owner_and_draft[1].content)


def analyze(content: str, author: str | None) -> dict[str, Any]:
    """Analyze a text: return its language, its terms and whether it mentions a time, as columns of `memory`."""
    text = text_with_author(content, author)
    found = terms(text)
    return {
        "content": store(content),
        "language": language_of(text),
        "tells_when": mentions_time(content),
        "terms": found,
        "length": len(found),
    }


def named_by(content: str, scope: Scope) -> dict[str, Any] | None:
    """Return what a memory names, for the graph. Memories of sessions are not part of it."""
    return None if scope == "session" else graph_of(content)


def take_graph(items: Iterable[dict[str, Any]]) -> str | None:
    """Remove `graph` from rows, and return all as the JSON of `holdfast.link_graph`, or None if they name nothing."""
    found = [
        {"memory": item["id"], "scope": item["scope"], "owner": item["owner"], **graph}
        for item in items
        if (graph := item.pop("graph", None)) is not None
    ]
    return msgspec.json.encode(found).decode() if found else None


def text_with_author(content: str, author: str | None) -> str:
    """Return the text to embed and index: with its author, unless that is only a role or the text begins with it."""
    if (
        author is None
        or author.casefold() in ROLES
        or re.match(rf"{re.escape(author)}(?![a-z])", content, re.IGNORECASE)
    ):
        return content
    return f"{author}: {content}"


def with_previous_turn(text: str, previous: str | None) -> str:
    """Return the text to embed with the previous turn. Only a short turn needs it: it says little alone."""
    return text if previous is None or len(text) > SHORT_TURN else f"{previous}\n{text}"


def digest_of(ids: OwnerIds, row: Mapping[str, Any]) -> UUID:
    """Return the digest of a memory: equal for the same text, owner, agent, type, author, place and time."""
    at = row["said_at"]
    moment = "" if at is None else at.astimezone(UTC).isoformat()
    place = (row[name] for name in ("type", "conversation", "seq", "author"))
    return _digest(ids.scope, ids.id, ids.agent, *place, moment, row["content"])


def repeat_digest_of(ids: OwnerIds, row: Mapping[str, Any]) -> UUID:
    """Return the digest of a sentence that is stored once: independent of its place and time."""
    sentence = " ".join(row["content"].split()).rstrip(".!\u3002\uff01 ").casefold()
    return _digest(ids.scope, ids.id, "said", row["type"], row["author"], row["trust"], sentence or row["content"])


def _digest(*parts: object) -> UUID:
    joined = "\0".join("" if part is None else str(part) for part in parts)  # stored text has no NUL
    return UUID(bytes=hashlib.blake2b(joined.encode(), digest_size=16).digest())


def is_by_owner(author: str | None, owner: Owner) -> bool:
    """Whether the author is the user of the memory, by name or by the role "user"."""
    user = owner.name if owner.scope == "user" else owner.user
    return author is not None and author.casefold() in {"user", user.casefold() if user else "user"}


def parse_ttl(ttl: timedelta | float | None) -> timedelta | None:
    """Return a time to live, given as a time span or in seconds."""
    if ttl is None:
        return None
    try:
        span = ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)
    except (TypeError, ValueError, OverflowError):
        span = timedelta(0)
    if not timedelta(0) < span <= LONGEST_TTL:
        raise InvalidInput(f"the ttl {ttl!r:.100} is invalid", next="Pass a duration greater than zero.")
    return span


def check_moment(moment: object) -> None:
    """Raise InvalidInput for a value that is neither None nor a datetime in range."""
    if moment is not None and not isinstance(moment, datetime):
        raise InvalidInput(f"{moment!r:.100} is not a time", next="Pass a datetime.")
    if moment is not None and not 1 < with_time_zone(moment).year < MAXYEAR:
        raise InvalidInput(f"{moment!r:.100} is out of range", next=f"Use a year from 2 to {MAXYEAR - 1}.")


def stored_importance(importance: float) -> float:
    """Return the importance to store: 0 if it is too small for the column."""
    return float(importance) if importance >= LEAST_IMPORTANCE else 0.0


def check_importance(importance: float) -> None:
    """Raise InvalidInput for a value that is not a number from 0 to 1."""
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the importance {importance!r:.100} is invalid", next="Use a number from 0 to 1.")


def check_metadata(metadata: object) -> None:
    """Raise InvalidInput for a value that is not a mapping with text keys."""
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            "the metadata is not an object", why=f"it is {metadata!r:.100}", next="Pass a mapping with strings as keys."
        )
    if not all(isinstance(key, str) for key in cast(Mapping[object, object], metadata)):
        raise InvalidInput("a key of the metadata is not a string", next="Pass a mapping with strings as keys.")


def _check_content(content: object) -> None:
    if not isinstance(content, str):
        raise InvalidInput(f"{content!r:.100} is not a string", next="Pass the text to remember.")
    if not content.strip():
        raise InvalidInput("the memory is empty", next="Pass the text to remember.")
    size = len(store(content).encode())
    if size > MAX_CONTENT_BYTES:
        raise TooLarge(
            "the memory is too large",
            why=f"it has {size} bytes; the limit is {MAX_CONTENT_BYTES}",
            next="Store its facts as several short memories.",
            size=size,
            limit=MAX_CONTENT_BYTES,
        )


def _check_seq(seq: object) -> None:
    if seq is None:
        return
    if not isinstance(seq, int) or isinstance(seq, bool) or not -(2**63) <= seq < 2**63:
        raise InvalidInput(f"the seq {seq!r:.100} is invalid", next="Use an integer.")


def with_time_zone(moment: datetime) -> datetime:
    """Return a datetime with a time zone: UTC if it has none."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
