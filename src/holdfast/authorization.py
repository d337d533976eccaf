"""Authorization: who may read and change what. Every entry point asks here.

Users of a tenant are kept apart as tenants are: what is another user's is answered exactly as what does not exist.
Whoever has the scope `admin` reads and changes everything in their tenant.

- A conversation is its user's, and so are its nodes, state, runs, approvals and executions. One that is nobody's is for
  admins, and for those who may adopt it.
- A user's memories are theirs, and a session's are those of its conversation's user. Everybody reads the memories of
  agents and of the organization. Admins change them: what stands there is told to everybody.
- Skills, tools and agents that are switched off are shown to admins alone.
- To name another user needs the scope `admin`, whether there is such a user or not.

Scopes are checked before: see `Principal.require`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec

from holdfast.access.principals import Principal
from holdfast.agents import Approval, Run
from holdfast.agents.runs import unknown_run
from holdfast.conversations.contexts import Context, by_user, parse_context
from holdfast.conversations.conversation import Conversation
from holdfast.conversations.nodes import Node
from holdfast.conversations.payloads import role_of
from holdfast.conversations.refusals import unknown, unknown_node, unknown_session
from holdfast.core.cursors import Page, read_cursor, unusable, write_cursor
from holdfast.core.errors import Forbidden, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.execution.records import Execution, unknown_execution
from holdfast.memory import Holding, Memory, Owner, Scope, Trust
from holdfast.skills.permits import opens
from holdfast.skills.tool import Entry
from holdfast.skills.tools import unknown_tool

SHARED: frozenset[Scope] = frozenset({"agent", "organization"})
SECTIONS: tuple[Scope, ...] = ("organization", "agent", "user", "session")
SESSIONS_READ = 200  # of the caller's, for one page of owners
START = UUID(int=0)  # of a section: nobody has this id

Name = Annotated[str, msgspec.Meta(min_length=1)]


class OwnerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose memories are meant: a user's (the caller's without a name), a session's, an agent's, the organization's.

    `agent` is who brings a memory in, or, in a search, whose are meant alone.
    """

    scope: Scope = "user"
    name: Name | None = None
    agent: Name | None = None


class Authorization:
    """What one caller may read and change in their tenant."""

    def __init__(self, engine: Engine, caller: Principal) -> None:
        self._engine = engine
        self._caller = caller

    # Users

    @property
    def is_admin(self) -> bool:
        """Whether everything in the tenant is the caller's to read and change."""
        return "admin" in self._caller.scopes

    async def is_caller(self, user: str | None) -> bool:
        """Whether a user is the caller, who may have more than one name: the one mapped to an id, and the id itself."""
        if user is None or user == self._caller.user:
            return user is not None
        identities = self._engine.identities
        return await identities.known_as("user", user) == await identities.known_as("user", self._caller.user)

    async def user(self, named: str | None) -> str:
        """Whose things are meant by a caller who names this user, or nobody for themselves."""
        if named is None:
            return self._caller.user
        if not await self.is_caller(named):
            self._caller.require("admin")
        return named

    async def users(self, named: str | None) -> str | None:
        """Whose things are listed for a caller who names this user, or nobody; None: everybody's."""
        if self.is_admin:
            return named
        await self.user(named)
        return self._caller.user

    def agent(self, named: str) -> str:
        """An agent that the caller may name; for whoever speaks for an agent there is no other."""
        own = self._caller.agent
        if own is not None and named != own:
            raise NotFound(f"there is no agent {named!r:.200}", next=f"You speak for {own}: name that one.")
        return named

    # Conversations

    async def conversation(self, id: UUID) -> Conversation:
        """The conversation, if the caller may read it."""
        found = await self._engine.conversations.get(id)
        if not await self._has(found):
            raise unknown(id)
        return found

    async def session(self, session_id: str) -> Conversation:
        """The conversation that the caller means by a session id: their own, or for an admin anybody's."""
        found = await self._own_session(session_id)
        if found is None and self.is_admin:
            found = await self._engine.conversations.find(session_id=session_id)
        if found is None:
            raise unknown_session(session_id)
        return found

    async def own_session(self, session_id: str) -> Conversation | None:
        """The same, of the caller's own alone; for whoever speaks for an agent, only with that agent."""
        found = await self._own_session(session_id)
        return found if found is not None and self._caller.agent in (None, found.agent) else None

    async def node(self, id: UUID) -> Node:
        """The node, if the caller may read its conversation."""
        node = await self._engine.conversations.read(id)
        if not self.is_admin and not await self._has(await self._engine.conversations.get(node.root)):
            raise unknown_node(id)
        return node

    async def node_to_change(self, id: UUID) -> Node:
        """The node, if the caller may change it: what the system says, a user may not reword."""
        node = await self.node(id)
        if node.context:
            context = parse_context(node.context)
            self.check_role("system" if context.name == "system" else role_of(context, node.payload))
        return node

    def context(self, talk: Conversation, context: str | None, payload: Mapping[str, Any] | None) -> Context:
        """The context of what a caller writes: as themselves or as an agent; in a document as anybody."""
        parsed = by_user(self._caller.user) if context is None else parse_context(context)
        if talk.kind == "conversation" and parsed.name != "agent" and parsed.value != self._caller.user:
            self._require_admin_to_write_as(str(parsed))
        self.check_role(role_of(parsed, payload))
        return parsed

    def check_role(self, role: str | None) -> None:
        """Refuse to speak as the system: a model obeys it."""
        if role == "system":
            self._require_admin_to_write_as(role)

    def check_state(self, keys: Iterable[str]) -> None:
        """Refuse to change state that every user of an app shares."""
        shared = next((key for key in keys if key.startswith("app:")), None)
        if shared is not None and not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not change the state {shared[:100]!r}",
                why="every user of the app shares it: that needs the scope 'admin'",
                next="Keep it for the user (`user:`) or for the conversation (no prefix).",
            )

    # Runs

    async def run(self, id: UUID) -> Run:
        """The run, if the caller may read its conversation."""
        run = await self._engine.agents.runs.get(id)
        if not await self._has(await self._engine.conversations.get(run.conversation)):
            raise unknown_run(id)
        return run

    async def approval(self, id: UUID) -> Approval:
        """The approval, if the caller may read its conversation."""
        approval = await self._engine.agents.approvals.get(id)
        if not await self._has(await self._engine.conversations.get(approval.conversation)):
            raise NotFound(f"there is no approval {id}")
        return approval

    async def execution(self, id: UUID) -> Execution:
        """The execution, if it is the caller's."""
        found = await self._engine.executions.get(id)
        if not self.is_admin and not await self._made(found):
            raise unknown_execution(id)
        return found

    # Tools

    async def tool(self, name: str) -> Entry:
        """The tool, if the caller may know of it."""
        entry = await self._engine.tools.get(name)
        if not entry.active and not self.is_admin:
            raise unknown_tool(name)
        return entry

    async def check_tool_call(self, name: str) -> None:
        """Refuse a direct call of a tool that is not open to users. Those who speak for an agent use the gateway."""
        caller = self._caller
        if caller.agent is not None:
            raise Forbidden(
                "a tool is not called for an agent here",
                why=f"the caller speaks for the agent {caller.agent!r:.200}",
                next="Call it by /mcp or /rpc, where it is called as that agent may; or use a key that is no agent's.",
            )
        entry = await self.tool(name)
        if self.is_admin or (opens(entry.tool.access, entry.permissions) and not entry.tool.approve):
            return
        why = "a person has to allow its calls" if entry.tool.approve else "it is not open to users"
        raise Forbidden(
            f"{caller.user!r} may not call the tool {name}",
            why=f"{why}, and to call it directly needs the scope 'admin'",
            next=f"Have an agent call it, or ask an admin, who can open it: "
            f"`holdfast tools permit {name} --users LEVEL`.",
        )

    # Memories

    async def owner(self, named: OwnerName) -> Owner:
        """The owner, if the caller may read their memories."""
        match named.scope:
            case "user":
                return Owner("user", await self.user(named.name), named.agent)
            case "session":
                return await self._session_owner(_needed(named), named.agent)
            case "agent":
                return Owner("agent", _needed(named), named.name)
            case "organization":
                return Owner("organization", named.name or "", named.agent)

    async def owner_to_change(self, named: OwnerName) -> Owner:
        """The owner, if the caller may change their memories."""
        owner = await self.owner(named)
        self._check_shared(owner)
        return owner

    async def memory(self, id: UUID) -> Memory:
        """The memory, if the caller may read it."""
        try:
            memory = await self._engine.memory.get(id)
        except NotFound:
            if self.is_admin:
                raise
        else:
            if await self._reads(memory.owner):
                return memory
        # When and why one was deleted is for those who could have read it, and of that nothing is known any more.
        raise NotFound(f"there is no memory {id}", next="Search for it.")

    async def memory_to_change(self, id: UUID) -> Memory:
        """The memory, if the caller may change it."""
        memory = await self.memory(id)
        self._check_shared(memory.owner)
        return memory

    def check_trust(self, trust: Trust | None) -> None:
        """Refuse to be trusted as the system is."""
        if trust == "system" and not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not be trusted as the system",
                why="that needs the scope 'admin'",
                next="Use 'user', 'agent', 'tool' or 'untrusted'.",
            )

    async def memory_owners(self, scope: Scope | None, *, limit: int, cursor: str | None) -> Page[Holding]:
        """Those whose memories the caller may read, scope by scope; of other users not even that they have some."""
        places = range(len(SECTIONS)) if scope is None else [SECTIONS.index(scope)]
        first, behind = _place(cursor, places)
        found: list[Holding] = []
        for place in range(first, places[-1] + 1):
            if len(found) == limit:
                return Page(found, write_cursor(START, place))
            page = await self._owners_of(SECTIONS[place], limit=limit - len(found), cursor=behind)
            found += page
            if page.cursor is not None:
                return Page(found, write_cursor(read_cursor(page.cursor)[0], place))
            behind = None
        return Page(found)

    # How it is decided

    async def _has(self, conversation: Conversation) -> bool:
        """Whether a conversation is the caller's."""
        return self.is_admin or await self.is_caller(conversation.user)

    async def _made(self, execution: Execution) -> bool:
        """Whether the caller made a call, or it was made in a conversation of theirs."""
        if execution.run_id is None:
            return await self.is_caller(execution.user)
        run = await self._engine.agents.runs.get(execution.run_id)
        return await self._has(await self._engine.conversations.get(run.conversation))

    async def _own_session(self, session_id: str) -> Conversation | None:
        """The caller's conversation of this session id, or one of nobody's that they may adopt."""
        caller = self._caller
        return await self._engine.conversations.find(session_id=session_id, user=caller.user, adopts=caller.adopts)

    async def _reads(self, owner: Owner) -> bool:
        if self.is_admin or owner.scope in SHARED:
            return True
        if owner.scope == "user":
            return await self.is_caller(owner.name)
        return owner.conversation is not None and await self._has(
            await self._engine.conversations.get(owner.conversation)
        )

    async def _session_owner(self, session_id: str, agent: str | None) -> Owner:
        try:
            talk = await self.session(session_id)
        except NotFound:
            if not self.is_admin:
                raise
            return Owner("session", session_id, agent)  # which begins with what an admin has it remember
        return Owner("session", session_id, agent, talk.user, talk.id)

    async def _owners_of(self, scope: Scope, *, limit: int, cursor: str | None) -> Page[Holding]:
        if self.is_admin or scope in SHARED:
            return await self._engine.memory.owners(scope, limit=limit, cursor=cursor)
        if scope == "user":
            return Page(await self._engine.memory.holdings(scope, [self._caller.user]))
        return await self._own_sessions(limit=limit, cursor=cursor)

    async def _own_sessions(self, *, limit: int, cursor: str | None) -> Page[Holding]:
        """The caller's sessions that have memories, the newest conversation first."""
        talks = await self._engine.conversations.list(user=self._caller.user, limit=SESSIONS_READ, cursor=cursor)
        sessions = [Owner("session", talk.session_id, None, talk.user, talk.id) for talk in talks if talk.session_id]
        held = await self._engine.memory.holdings("session", sessions)
        last = held[limit - 1].owner.conversation if len(held) > limit else None
        if last is not None:
            return Page(held[:limit], write_cursor(last))
        return Page(held, talks.cursor)

    def _check_shared(self, owner: Owner) -> None:
        if owner.scope in SHARED and not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not change memories of the {owner.scope}",
                why="everybody is told of them: that needs the scope 'admin'",
                next="Remember it for the user or the session.",
            )

    def _require_admin_to_write_as(self, speaker: str) -> None:
        if not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not write as {speaker[:100]!r}",
                why="to speak as another user, or as the system, needs the scope 'admin'",
                next=f"Write as {str(by_user(self._caller.user))!r}, or as an agent.",
            )


def _needed(named: OwnerName) -> str:
    if named.name is None:
        raise InvalidInput(f"whose memories of the scope {named.scope!r} are meant is not said", next="Give a name.")
    return named.name


def _place(cursor: str | None, places: Sequence[int]) -> tuple[int, str | None]:
    """In which section a page begins, and behind what."""
    if cursor is None:
        return places[0], None
    id, place = read_cursor(cursor)
    if place not in places:
        raise unusable(cursor)
    return place, None if id == START else write_cursor(id)
