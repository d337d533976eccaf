"""Google ADK's memory, kept among ours.

    Runner(…, session_service=PostgresSessionService(engine), memory_service=PostgresMemoryService(engine))

What an event says is a memory of its user, brought in by the agent that is named like the app. ADK finds what that
agent brought in, and nothing else; every other door finds it among the user's memories.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Self
from uuid import UUID

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part
from typing_extensions import override

from holdfast.adapters.adk_events import USER, plain
from holdfast.adapters.hosting import Hosted
from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.core.names import MAX_NAME_BYTES, stored_name
from holdfast.core.text import store
from holdfast.engine import Engine
from holdfast.memory.asking import MAX_QUESTION
from holdfast.memory.drafts import MAX_CONTENT_BYTES, Draft
from holdfast.memory.known import known_keys
from holdfast.memory.memory import Memory
from holdfast.memory.owners import Owner, Owners, user
from holdfast.memory.recall import Hit

TOGETHER = 500  # events that are stored together, all of them or none
MAX_PIECE = MAX_CONTENT_BYTES // 8  # characters: none takes more than eight bytes where it is stored
MAX_AUTHOR = MAX_NAME_BYTES // 8
OPTIONS = ("type", "importance", "ttl", "trust")  # what custom metadata can say about the memory itself


class PostgresMemoryService(BaseMemoryService):
    """ADK's memory service on an engine, or on the database at an address.

    A search returns at most `max_results`; None: what the setting `memory.long_term.max_results` says.
    """

    def __init__(
        self, engine_or_url: Engine | str | None = None, *, tenant: str | None = None, max_results: int | None = None
    ) -> None:
        self._hosted = Hosted.of(engine_or_url, tenant)
        self._max_results = max_results

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Be done with it; an engine that was given stays open."""
        await self._hosted.close()

    @override
    async def add_session_to_memory(self, session: Session) -> None:
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    @override
    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        owner = owner_of(app_name, user_id)
        drafts = list(drafts_of(events, app_name, session_id, custom_metadata or {}))
        await self._hosted.run(lambda engine: _ingest(engine, owner, drafts))

    @override
    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        owner = owner_of(app_name, user_id)
        drafts = [draft_of(entry, app_name, {**(custom_metadata or {}), **entry.custom_metadata}) for entry in memories]

        async def add(engine: Engine) -> None:
            for draft, memory in zip(drafts, await engine.memory.remember_many(owner, drafts), strict=True):
                if memory.content != draft.content:  # it was there under its id, with another text
                    await _correct(engine, memory, draft)

        await self._hosted.run(add)

    @override
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        owner = owner_of(app_name, user_id)
        question = query[:MAX_QUESTION]  # ADK asks with whatever a user says
        if not question.strip():
            return SearchMemoryResponse()
        hits = await self._hosted.run(
            lambda engine: engine.memory.search(owner, question, limit=self._max_results, explain=True)
        )
        return SearchMemoryResponse(memories=[entry_of(hit.memory) for hit in answering(hits)])

    @override
    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        owner = owner_of(app_name, user_id)
        try:
            id = UUID(memory_id or "")
        except ValueError:
            return  # no memory has such an id

        async def delete(engine: Engine) -> None:
            owners = Owners(engine.database, engine.identities)
            memory = await engine.memory.get(id)
            if await owners.sought(memory.owner) == await owners.sought(owner):
                await engine.memory.forget(id)

        try:
            await self._hosted.run(delete)
        except NotFound:
            return  # it is gone already


async def _ingest(engine: Engine, owner: Owner, drafts: Sequence[Draft]) -> None:
    ids = await Owners(engine.database, engine.identities).sought(owner)
    for start in range(0, len(drafts), TOGETHER):
        some = drafts[start : start + TOGETHER]
        known = await known_keys(engine.database, ids, [draft.key for draft in some if draft.key])
        await engine.memory.remember_many(owner, [draft for draft in some if draft.key not in known])


async def _correct(engine: Engine, memory: Memory, draft: Draft) -> None:
    try:
        await engine.memory.edit(memory.id, content=draft.content, metadata=draft.metadata)
    except AlreadyExists:  # another one says so already
        await engine.memory.forget(memory.id)


def owner_of(app: str, user_id: str) -> Owner:
    """Whose ADK's memories are: a user's, as far as the app brought them in."""
    stored_name("app", app)
    return user(user_id, agent=app)


# What is remembered


def drafts_of(
    events: Sequence[Event], app: str, session_id: str | None, custom_metadata: Mapping[str, object]
) -> Iterator[Draft]:
    """What the events say, one memory each; a text that is too long for one becomes several.

    Their places are their times: events come in parts, and a session may have been read without its beginning. Where
    times are equal or step back, the order in which the events are given counts.
    """
    said = _said_of(custom_metadata)
    place = 0
    for event in events:
        text = _text_of(event)
        if event.partial or not text.strip():
            continue
        at = _time_of(event)
        id = event.id or _hash(event.author, str(event.timestamp), text)
        author = _author_of(event.author)
        metadata = {
            **said["metadata"],
            **_whole(event.author),
            "app_name": app,
            "session_id": session_id,
            "event_id": id,
        }
        key = _hash("event", app, session_id or "", id)
        trust = said.get("trust") or ("user" if event.author == USER else "agent")
        for number, piece in enumerate(_pieces(text)):
            place = max(place + 1, 0 if at is None else int(at.timestamp() * 1_000_000))
            yield Draft(
                content=piece,
                type=said.get("type", "turn"),
                importance=said.get("importance", 1.0),
                ttl=said.get("ttl"),
                trust=trust,
                metadata=metadata,
                source=id if _is_name(id) else _hash(id),
                key=f"{key}#{number}" if number else key,
                conversation=session_id,
                seq=place if session_id else None,
                author=author,
                at=at,
            )


def draft_of(entry: MemoryEntry, app: str, custom_metadata: Mapping[str, object]) -> Draft:
    """What somebody wants to be remembered, under its id if it has one."""
    said = _said_of(custom_metadata)
    try:
        at = datetime.fromisoformat(entry.timestamp) if entry.timestamp else None
    except ValueError:
        raise InvalidInput(
            f"{entry.timestamp!r:.100} is no time", next="Give it as ISO 8601 has it, such as `2026-01-31T12:00:00Z`."
        ) from None
    return Draft(
        content=_joined(entry.content, " "),
        type=said.get("type"),
        importance=said.get("importance", 1.0),
        ttl=said.get("ttl"),
        trust=said.get("trust") or ("user" if entry.author in (None, "", USER) else "agent"),
        metadata={**said["metadata"], **_whole(entry.author), "app_name": app},
        key=_hash("memory", app, entry.id) if entry.id else None,
        author=_author_of(entry.author),
        at=at,
    )


def _said_of(custom_metadata: Mapping[str, object]) -> dict[str, Any]:
    given = plain(dict(custom_metadata))
    said = {name: given.pop(name) for name in OPTIONS if given.get(name) is not None}
    return {**said, "metadata": given}


def _text_of(event: Event) -> str:
    heard = event.input_transcription or event.output_transcription
    # What a model says comes in pieces of one text; what a user says, in texts.
    said = _joined(event.content, " " if event.author == USER else "")
    return said or (heard.text or "" if heard and heard.finished else "")


def _joined(content: Content | None, between: str) -> str:
    parts = content.parts or [] if content else []
    return between.join(part.text for part in parts if part.text and not part.thought)


def _author_of(name: str | None) -> str | None:
    """Who said it, cut where the name is too long to be stored as one."""
    return name[:MAX_AUTHOR] if name and not _is_name(name) else name or None


def _whole(author: str | None) -> dict[str, str]:
    """The name of who said it, for the metadata, where it is cut elsewhere."""
    return {"author": author} if author and not _is_name(author) else {}


def _is_name(text: str) -> bool:
    return len(text) <= MAX_NAME_BYTES and len(store(text).encode()) <= MAX_NAME_BYTES


def _time_of(event: Event) -> datetime | None:
    try:
        return datetime.fromtimestamp(event.timestamp, UTC)
    except (ValueError, OverflowError, OSError):  # not a number, or no year that there is
        return None


def _pieces(text: str) -> Iterator[str]:
    """The text itself, or where that is too long for a memory, its pieces, cut between words where there are any."""
    if len(text) <= MAX_PIECE or len(store(text).encode()) <= MAX_CONTENT_BYTES:
        yield text
        return
    while text:
        cut = len(text)
        if cut > MAX_PIECE:
            cut = max(text.rfind(space, 0, MAX_PIECE) + 1 for space in " \n") or MAX_PIECE
        if text[:cut].strip():
            yield text[:cut]
        text = text[cut:]


def _hash(*parts: str) -> str:
    return f"adk:{sha256(json.dumps(parts).encode()).hexdigest()}"


# What is found


def answering(hits: Sequence[Hit]) -> list[Hit]:
    """Those that the question speaks to, and what was said in one conversation with them.

    Without a model the others are found, too, for what is new and important about them; ADK would prompt with them.
    """
    spoken_to = [hit for hit in hits if _is_spoken_to(hit)]
    talks = {hit.memory.conversation for hit in spoken_to} - {None}
    return [hit for hit in hits if hit in spoken_to or hit.memory.conversation in talks]


def _is_spoken_to(hit: Hit) -> bool:
    parts = hit.parts
    return parts is not None and parts.vector + parts.words + parts.author + parts.date > 0


def entry_of(memory: Memory) -> MemoryEntry:
    """A memory as ADK has it."""
    return MemoryEntry(
        id=str(memory.id),
        content=Content(role="model" if memory.trust == "agent" else "user", parts=[Part(text=memory.content)]),
        author=memory.author,
        timestamp=(memory.at or memory.created_at).isoformat(),
        custom_metadata=memory.metadata,
    )
