"""ADK session service: stores sessions of Google ADK as conversations.

The memory service is in `adk_memory`, the knowledge service in `adk_knowledge`.

    runner = Runner(agent=agent, app_name="shop", session_service=PostgresSessionService(engine))

An event becomes a node. Other readers see its canonical part; ADK gets back the event's own JSON, which is stored with
the node. ADK reads nodes of other writers as events. Importing this module registers the scheme `holdfast://` in ADK's
service registry.
"""

import asyncio
from typing import Any, NamedTuple
from uuid import UUID
from weakref import WeakValueDictionary

from google.adk.cli.service_registry import get_service_registry
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from typing_extensions import override

from holdfast.adapters.adk_events import FORM, drafts_of, events_of, plain
from holdfast.adapters.adk_knowledge import PostgresKnowledgeService
from holdfast.adapters.adk_memory import PostgresMemoryService
from holdfast.adapters.engine_thread import SCHEME, EngineUser, SharedEngine
from holdfast.conversations.nodes import Node, NodeInput
from holdfast.conversations.snapshots import Snapshot
from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.core.ids import uuid7
from holdfast.core.names import stored_names
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction

__all__ = ["PostgresKnowledgeService", "PostgresMemoryService", "PostgresSessionService"]


class SessionMarker(NamedTuple):
    """The conversation of a session, and the revision at which it was read. ADK keeps it as the session's marker."""

    conversation: UUID
    revision: int
    is_nobodys: bool = False  # created without a user: the first user who appends an event adopts it

    def __str__(self) -> str:
        return f"{self.conversation}:{self.revision}{':open' if self.is_nobodys else ''}"

    @classmethod
    def read(cls, marker: str | None) -> "SessionMarker | None":
        """Parse a marker. Return None if it is not one of ours."""
        try:
            conversation, revision, *more = (marker or "").split(":")
            return cls(UUID(conversation), int(revision), bool(more))
        except ValueError:
            return None


class PostgresSessionService(EngineUser, BaseSessionService):
    """ADK's session service, on an open engine or on the database at an address."""

    def __init__(self, engine_or_url: Engine | str | None = None, *, tenant: str | None = None) -> None:
        super().__init__(SharedEngine.of(engine_or_url, tenant))
        self._locks: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        id = (session_id or "").strip() or str(uuid7())
        names = stored_names(app_name, user_id, id)
        stored = plain(state or {})

        async def create(engine: Engine) -> Snapshot:
            # A conversation without a user can be read under this id too, so it counts as existing.
            if session_id and await engine.snapshots.read(app_name, user_id, *names, form=FORM, count=0):
                raise AlreadyExists(f"the session {id!r} already exists")
            await engine.conversations.create(app=app_name, user=user_id, session_id=id, state=stored)
            created = await engine.snapshots.read(app_name, user_id, *names, form=FORM, count=0)
            if created is None:
                raise NotFound(f"the session {id!r} was deleted right after it was created")
            return created

        try:
            return session_of(await self._hosted.run(create), app_name, user_id, id)
        except AlreadyExists as error:
            raise AlreadyExistsError(f"Session with id {id} already exists.") from error

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        id = session_id.strip()
        options = config or GetSessionConfig()
        found = await self._hosted.run(
            lambda engine: engine.snapshots.read(
                app_name,
                user_id,
                *stored_names(app_name, user_id, id),
                form=FORM,
                count=options.num_recent_events,
                since=options.after_timestamp,
            )
        )
        return None if found is None else session_of(found, app_name, user_id, id)

    @override
    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        found = await self._hosted.run(lambda engine: engine.snapshots.list(app_name, user_id, form=FORM))
        sessions = [session_of(one, app_name, user, one.session_id) for one in found if (user := one.user) is not None]
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        names = stored_names(app_name, user_id, session_id.strip())

        async def delete(engine: Engine) -> None:
            found = await engine.snapshots.read(app_name, user_id, *names, form=FORM, count=0)
            if found is not None and found.user is not None:
                await engine.conversations.remove(found.id)

        try:
            await self._hosted.run(delete)
        except NotFound:
            return  # it was deleted concurrently

    @override
    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        async def read(engine: Engine) -> dict[str, Any]:
            return await engine.state.of_user(app_name, await engine.identities.find_id("user", user_id))

        return await self._hosted.run(read)

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        return await self._hosted.run(lambda engine: self._append(engine, session, event))

    async def _append(self, engine: Engine, session: Session, event: Event) -> Event:
        """Store the event, then add it to the session. If it cannot be stored, the session is unchanged."""
        lock = self._locks.setdefault((session.app_name, session.user_id, session.id), asyncio.Lock())
        async with lock:  # concurrent events of one session are stored in the order of the calls
            drafts, changes = drafts_of(event, session.user_id)
            place = await self._place(engine, session)
            try:
                first, last = await _store(engine, session, place, drafts, changes)
            except Conflict as error:
                raise _stale_error(session, place, error.current) from error
            except NotFound as error:
                raise SessionNotFoundError(f"Session {session.id} not found.") from error
            if first.version > 1 or first.revision != place.revision + 1:
                return event  # already stored: the session has it, or is stale and its next append fails
            self._apply_temp_state(session, event)
            self._commit_event_to_session(session, self._trim_temp_delta_state(event))
            session.last_update_time = event.timestamp
            session._storage_update_marker = str(SessionMarker(place.conversation, last.revision))  # pyright: ignore[reportPrivateUsage]
        return event

    async def _place(self, engine: Engine, session: Session) -> SessionMarker:
        marked = SessionMarker.read(session._storage_update_marker)  # pyright: ignore[reportPrivateUsage]
        if marked is not None:
            return marked
        # A session that went through JSON has no marker. Its last event must be the last stored one.
        names = stored_names(session.app_name, session.user_id, session.id)
        found = await engine.snapshots.read(session.app_name, session.user_id, *names, form=FORM, count=1)
        if found is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        place = _place_of(found)
        if [event.id for event in session.events[-1:]] != [event.id for event in events_of(found)]:
            raise _stale_error(session, place, place.revision)
        return place


async def _store(
    engine: Engine, session: Session, place: SessionMarker, drafts: list[NodeInput], changes: dict[str, Any]
) -> tuple[Node, Node]:
    if not place.is_nobodys:
        return await _append_nodes(engine, place, drafts, changes, None)
    async with engine.transaction() as tx:
        if not await engine.conversations.adopt(place.conversation, app=session.app_name, user=session.user_id, tx=tx):
            raise NotFound(f"the session {session.id!r} now belongs to another user")
        return await _append_nodes(engine, place, drafts, changes, tx)


async def _append_nodes(
    engine: Engine, place: SessionMarker, drafts: list[NodeInput], changes: dict[str, Any], tx: Transaction | None
) -> tuple[Node, Node]:
    if len(drafts) > 1:
        nodes = await engine.conversations.append_all(
            place.conversation, drafts, expect=place.revision, state=changes, tx=tx
        )
        return nodes[0], nodes[-1]
    draft = drafts[0]
    node = await engine.conversations.append(
        place.conversation,
        draft.content,
        context=draft.context,
        payload=draft.payload,
        key=draft.key,
        expect=place.revision,
        state=changes,
        form=draft.form,
        native=draft.native,
        tx=tx,
    )
    return node, node


def _stale_error(session: Session, place: SessionMarker, current: int) -> StaleSessionError:
    return StaleSessionError(
        f"The session {session.id} has been modified in storage since it was read: it is at revision {current}, not"
        f" {place.revision}. Get the session again and append to that one."
    )


def session_of(found: Snapshot, app: str, user: str, id: str) -> Session:
    """Convert a conversation to an ADK session."""
    session = Session(
        id=id,
        app_name=app,
        user_id=user,
        state=found.state,
        events=events_of(found),
        last_update_time=found.last_time,
    )
    session._storage_update_marker = str(_place_of(found))  # pyright: ignore[reportPrivateUsage]
    return session


def _place_of(found: Snapshot) -> SessionMarker:
    return SessionMarker(found.id, found.revision, found.user is None)


def register() -> None:
    """Register `holdfast://` in ADK, for `adk web --session_service_uri=holdfast://… --memory_service_uri=holdfast://…`."""
    registry = get_service_registry()
    registry.register_session_service(SCHEME, lambda uri, **_: PostgresSessionService(uri))
    registry.register_memory_service(SCHEME, lambda uri, **_: PostgresMemoryService(uri))


register()
