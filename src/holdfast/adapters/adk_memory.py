"""ADK memory service: stores memories of Google ADK as memories of users.

    Runner(…, session_service=PostgresSessionService(engine), memory_service=PostgresMemoryService(engine))

The text of an event becomes a memory of its user. The agent that stores it has the name of the app. ADK finds only
memories that this agent stored. All other interfaces find them among the user's memories.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part
from typing_extensions import override

from holdfast.adapters.adk_events import USER, plain
from holdfast.adapters.engine_thread import EngineUser, SharedEngine
from holdfast.core.errors import AlreadyExists, InvalidInput, NotFound
from holdfast.core.names import MAX_NAME_BYTES, stored_name
from holdfast.core.text import store
from holdfast.engine import Engine
from holdfast.memory.drafts import MAX_CONTENT_BYTES, Draft
from holdfast.memory.import_export import known_keys
from holdfast.memory.memory import Memory
from holdfast.memory.owners import Owner, Owners, user
from holdfast.memory.query import MAX_QUESTION
from holdfast.memory.recall import Hit

TOGETHER = 500  # memories that are stored in one batch, all or none
MAX_PIECE = MAX_CONTENT_BYTES // 8  # characters: a stored character takes at most eight bytes
MAX_AUTHOR = MAX_NAME_BYTES // 8
OPTIONS = ("type", "importance", "ttl", "trust")  # keys of custom metadata that set attributes of the memory


class PostgresMemoryService(EngineUser, BaseMemoryService):
    """ADK's memory service, on an open engine or on the database at an address.

    A search returns at most `max_results` memories, by default the setting `memory.long_term.max_results`.
    """

    def __init__(
        self, engine_or_url: Engine | str | None = None, *, tenant: str | None = None, max_results: int | None = None
    ) -> None:
        super().__init__(SharedEngine.of(engine_or_url, tenant))
        self._max_results = max_results

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
                if memory.content != draft.content:  # a memory with this id existed, with another text
                    await _correct(engine, memory, draft)

        await self._hosted.run(add)

    @override
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        owner = owner_of(app_name, user_id)
        question = query[:MAX_QUESTION]  # ADK searches for the whole message of a user
        if not question.strip():
            return SearchMemoryResponse()
        hits = await self._hosted.run(
            lambda engine: engine.memory.search(owner, question, limit=self._max_results, explain=True)
        )
        return SearchMemoryResponse(memories=[entry_of(hit.memory) for hit in best_per_conversation(hits)])

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
            if await owners.find_ids(memory.owner) == await owners.find_ids(owner):
                await engine.memory.forget(id)

        try:
            await self._hosted.run(delete)
        except NotFound:
            return  # it is already deleted


async def _ingest(engine: Engine, owner: Owner, drafts: Sequence[Draft]) -> None:
    ids = await Owners(engine.database, engine.identities).find_ids(owner)
    for start in range(0, len(drafts), TOGETHER):
        some = drafts[start : start + TOGETHER]
        known = await known_keys(engine.database, ids, [draft.key for draft in some if draft.key])
        await engine.memory.remember_many(owner, [draft for draft in some if draft.key not in known])


async def _correct(engine: Engine, memory: Memory, draft: Draft) -> None:
    try:
        await engine.memory.edit(memory.id, content=draft.content, metadata=draft.metadata)
    except AlreadyExists:  # another memory has this text
        await engine.memory.forget(memory.id)


def owner_of(app: str, user_id: str) -> Owner:
    """Return the owner of ADK's memories: the user, restricted to memories that the app stored."""
    stored_name("app", app)
    return user(user_id, agent=app)


# Storing


def drafts_of(
    events: Sequence[Event], app: str, session_id: str | None, custom_metadata: Mapping[str, object]
) -> Iterator[Draft]:
    """Yield a memory for the text of each event. A text that is too long becomes several memories.

    `seq` comes from the time of the event, because events arrive in parts, and a session may have been read without its
    beginning. If times are equal or go backwards, `seq` follows the order of the events.
    """
    options = _options_of(custom_metadata)
    place = 0
    for event in events:
        text = _text_of(event)
        if event.partial or not text.strip():
            continue
        at = _time_of(event)
        id = event.id or _hash(event.author, str(event.timestamp), text)
        author = _author_of(event.author)
        metadata = {
            **options["metadata"],
            **_whole(event.author),
            "app_name": app,
            "session_id": session_id,
            "event_id": id,
        }
        key = _hash("event", app, session_id or "", id)
        trust = options.get("trust") or ("user" if event.author == USER else "agent")
        for number, piece in enumerate(_pieces(text)):
            place = max(place + 1, 0 if at is None else int(at.timestamp() * 1_000_000))
            yield Draft(
                content=piece,
                type=options.get("type", "turn"),
                importance=options.get("importance", 1.0),
                ttl=options.get("ttl"),
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
    """Convert a memory entry to a draft, with a key from its id if it has one."""
    options = _options_of(custom_metadata)
    try:
        at = datetime.fromisoformat(entry.timestamp) if entry.timestamp else None
    except ValueError:
        raise InvalidInput(
            f"{entry.timestamp!r:.100} is not a time", next="Use ISO 8601, such as `2026-01-31T12:00:00Z`."
        ) from None
    return Draft(
        content=_joined(entry.content, " "),
        type=options.get("type"),
        importance=options.get("importance", 1.0),
        ttl=options.get("ttl"),
        trust=options.get("trust") or ("user" if entry.author in (None, "", USER) else "agent"),
        metadata={**options["metadata"], **_whole(entry.author), "app_name": app},
        key=_hash("memory", app, entry.id) if entry.id else None,
        author=_author_of(entry.author),
        at=at,
    )


def _options_of(custom_metadata: Mapping[str, object]) -> dict[str, Any]:
    metadata = plain(dict(custom_metadata))
    options = {name: metadata.pop(name) for name in OPTIONS if metadata.get(name) is not None}
    return {**options, "metadata": metadata}


def _text_of(event: Event) -> str:
    transcription = event.input_transcription or event.output_transcription
    # A model's parts are pieces of one text; a user's parts are separate texts.
    text = _joined(event.content, " " if event.author == USER else "")
    return text or (transcription.text or "" if transcription and transcription.finished else "")


def _joined(content: Content | None, between: str) -> str:
    parts = content.parts or [] if content else []
    return between.join(part.text for part in parts if part.text and not part.thought)


def _author_of(name: str | None) -> str | None:
    """Return the author, truncated if the name is too long to store."""
    return name[:MAX_AUTHOR] if name and not _is_name(name) else name or None


def _whole(author: str | None) -> dict[str, str]:
    """Return the full author for the metadata, if `_author_of` truncates it."""
    return {"author": author} if author and not _is_name(author) else {}


def _is_name(text: str) -> bool:
    return len(text) <= MAX_NAME_BYTES and len(store(text).encode()) <= MAX_NAME_BYTES


def _time_of(event: Event) -> datetime | None:
    try:
        return datetime.fromtimestamp(event.timestamp, UTC)
    except (ValueError, OverflowError, OSError):  # NaN, or out of the range of dates
        return None


def _pieces(text: str) -> Iterator[str]:
    """Yield the text, or pieces of it if it is too long for a memory, cut between words if possible."""
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


# Searching


def best_per_conversation(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that match the query, and hits from the same conversations.

    Without an embedding model, a search also returns hits that are only recent or important. ADK would put them into
    the prompt.
    """
    matches = [hit for hit in hits if _matches_query(hit)]
    conversations = {hit.memory.conversation for hit in matches} - {None}
    return [hit for hit in hits if hit in matches or hit.memory.conversation in conversations]


def _matches_query(hit: Hit) -> bool:
    parts = hit.parts
    return parts is not None and parts.vector + parts.words + parts.author + parts.date > 0


def entry_of(memory: Memory) -> MemoryEntry:
    """Convert a memory to a memory entry of ADK."""
    return MemoryEntry(
        id=str(memory.id),
        content=Content(role="model" if memory.trust == "agent" else "user", parts=[Part(text=memory.content)]),
        author=memory.author,
        timestamp=(memory.at or memory.created_at).isoformat(),
        custom_metadata=memory.metadata,
    )
