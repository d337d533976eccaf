"""Authorization: what a caller may read and change. The HTTP API and the gateway check access here.

Users of a tenant are isolated like tenants: an object of another user gets the same error as an object that does not
exist. A caller with the scope `admin` can read and change everything in the tenant.

- A conversation belongs to its user, together with its nodes, state, runs, approvals and executions. A conversation
  without a user is accessible to admins, and to callers who may adopt it.
- A user's memories belong to the user. A session's memories belong to the user of its conversation. Everybody can read
  the memories of agents and of the organization, but only admins can change them, because all users get them.
- The same holds for documents. A caller who acts for an agent reads only the agent's collections, and of the documents
  of agents only its own.
- Only admins can see inactive skills, tools and agents, and tools that access rules hide from them.
- Naming another user needs the scope `admin`, whether that user exists or not.

Scopes are checked earlier: see `Principal.require`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from holdfast.access.principals import Principal
from holdfast.agents import AgentRun, Approval
from holdfast.agents.definitions import collections_of
from holdfast.agents.runs import unknown_run
from holdfast.conversations.contexts import Context, by_user, parse_context
from holdfast.conversations.conversation import Conversation
from holdfast.conversations.errors import unknown_conversation, unknown_node, unknown_session
from holdfast.conversations.nodes import Node
from holdfast.conversations.payloads import role_of
from holdfast.core.cursors import Page, invalid_cursor, read_cursor, write_cursor
from holdfast.core.errors import Forbidden, InvalidInput, NotFound
from holdfast.engine import Engine
from holdfast.execution.executions import Execution, unknown_execution
from holdfast.knowledge import Document, IngestJob
from holdfast.knowledge.job import unknown_job
from holdfast.knowledge.knowledge_reader import KnowledgeReader, readable_owners
from holdfast.knowledge.readings import unknown_document
from holdfast.knowledge.research import ResearchRun
from holdfast.knowledge.research.run import unknown_research
from holdfast.memory import Memory, Owner, OwnerMemories, Scope, Trust, organization
from holdfast.skills.permissions import allows_users
from holdfast.skills.rules.rule_set import RuleCaller
from holdfast.skills.tool import Tool, ToolEntry
from holdfast.skills.tools import unknown_tool

DocumentScope = Literal["organization", "agent", "user"]
SHARED: frozenset[Scope] = frozenset({"agent", "organization"})
SECTIONS: tuple[Scope, ...] = ("organization", "agent", "user", "session")
SESSIONS_READ = 200  # sessions of the caller that are read for one page of owners
START = UUID(int=0)  # the start of a section in a cursor; no owner has this id

Name = Annotated[str, msgspec.Meta(min_length=1)]


class OwnerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An owner of memories: a user (without a name, the caller), a session, an agent or the organization.

    `agent` is the agent that stores a memory. In a search, only memories that this agent stored are found.
    """

    scope: Scope = "user"
    name: Name | None = None
    agent: Name | None = None


class DocumentOwner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An owner of documents: the organization, an agent, or a user (without a name, the caller)."""

    scope: DocumentScope = "organization"
    name: Name | None = None


class Authorization:
    """Checks what one caller may read and change in its tenant."""

    def __init__(self, engine: Engine, caller: Principal) -> None:
        self._engine = engine
        self._caller = caller

    # Users

    @property
    def is_admin(self) -> bool:
        """Whether the caller may read and change everything in the tenant."""
        return "admin" in self._caller.scopes

    async def is_caller(self, user: str | None) -> bool:
        """Whether a user is the caller. A user can be named by name and by id."""
        if user is None or user == self._caller.user:
            return user is not None
        identities = self._engine.identities
        return await identities.find_id("user", user) == await identities.find_id("user", self._caller.user)

    async def user(self, named: str | None) -> str:
        """Return the user that the caller names, by default the caller. Naming another user needs `admin`."""
        if named is None:
            return self._caller.user
        if not await self.is_caller(named):
            self._caller.require("admin")
        return named

    async def users(self, named: str | None) -> str | None:
        """Return the user whose objects a list shows to the caller, or None for all users.

        By default, an admin sees those of all users, and any other caller its own.
        """
        if self.is_admin:
            return named
        await self.user(named)
        return self._caller.user

    def agent(self, named: str) -> str:
        """Return the named agent. A caller who acts for an agent may name only that agent."""
        own = self._caller.agent
        if own is not None and named != own:
            raise NotFound(f"there is no agent {named!r:.200}", next=f"Your key acts for {own}: use that name.")
        return named

    # Conversations

    async def conversation(self, id: UUID) -> Conversation:
        """Return the conversation, if the caller may read it."""
        found = await self._engine.conversations.get(id)
        if not await self._has(found):
            raise unknown_conversation(id)
        return found

    async def session(self, session_id: str) -> Conversation:
        """Return the conversation of a session: the caller's own, or for an admin also another user's."""
        found = await self._own_session(session_id)
        if found is None and self.is_admin:
            found = await self._engine.conversations.find(session_id=session_id)
        if found is None:
            raise unknown_session(session_id)
        return found

    async def own_session(self, session_id: str) -> Conversation | None:
        """Return the caller's own conversation of a session. A caller who acts for an agent gets only that agent's."""
        found = await self._own_session(session_id)
        return found if found is not None and self._caller.agent in (None, found.agent) else None

    async def node(self, id: UUID) -> Node:
        """Return the node, if the caller may read its conversation."""
        node = await self._engine.conversations.read(id)
        if not self.is_admin and not await self._has(await self._engine.conversations.get(node.root)):
            raise unknown_node(id)
        return node

    async def node_to_change(self, id: UUID) -> Node:
        """Return the node, if the caller may change it. Only admins may edit nodes of the system."""
        node = await self.node(id)
        if node.context:
            context = parse_context(node.context)
            self.check_role("system" if context.name == "system" else role_of(context, node.payload))
        return node

    def context(self, conversation: Conversation, context: str | None, payload: Mapping[str, Any] | None) -> Context:
        """Return the context of a new node. Callers write as themselves or as an agent; in a document, as anybody."""
        parsed = by_user(self._caller.user) if context is None else parse_context(context)
        if conversation.kind == "conversation" and parsed.name != "agent" and parsed.value != self._caller.user:
            self._require_admin_to_write_as(str(parsed))
        self.check_role(role_of(parsed, payload))
        return parsed

    def check_role(self, role: str | None) -> None:
        """Refuse the role `system` to all but admins, because a model obeys it."""
        if role == "system":
            self._require_admin_to_write_as(role)

    def check_state(self, keys: Iterable[str]) -> None:
        """Refuse changes of `app:` state to all but admins, because all users of an app share it."""
        shared = next((key for key in keys if key.startswith("app:")), None)
        if shared is not None and not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not change the state {shared[:100]!r}",
                why="all users of the app share it, so this needs the scope 'admin'",
                next="Keep it for the user (`user:`) or for the conversation (no prefix).",
            )

    # Runs

    async def run(self, id: UUID) -> AgentRun:
        """Return the run, if the caller may read its conversation."""
        run = await self._engine.agents.runs.get(id)
        if not await self._has(await self._engine.conversations.get(run.conversation)):
            raise unknown_run(id)
        return run

    async def approval(self, id: UUID) -> Approval:
        """Return the approval, if the caller may read its conversation."""
        approval = await self._engine.agents.approvals.get(id)
        if not await self._has(await self._engine.conversations.get(approval.conversation)):
            raise NotFound(f"there is no approval {id}")
        return approval

    async def execution(self, id: UUID) -> Execution:
        """Return the execution, if the caller made it or may read its conversation."""
        found = await self._engine.executions.get(id)
        if not self.is_admin and not await self._may_read_execution(found):
            raise unknown_execution(id)
        return found

    # Tools

    async def tool(self, name: str) -> ToolEntry:
        """Return the tool, if the caller may see it. Only admins see inactive tools, and those that rules hide."""
        entry = await self._engine.tools.get(name)
        if not self.is_admin and (not entry.active or await self.hidden_tools([entry.tool])):
            raise unknown_tool(name)
        return entry

    async def hidden_tools(self, tools: Iterable[Tool]) -> set[str]:
        """Return the names of those of these tools that access rules hide from the caller. Admins see all."""
        if self.is_admin:
            return set()
        caller = self._caller
        rule_caller = RuleCaller(caller.user, caller.agent, caller.key, caller.scopes)
        return await self._engine.rules.hidden(rule_caller, {tool.name: tool for tool in tools})

    async def check_tool_call(self, name: str) -> None:
        """Refuse a direct call of a tool that is not open to users. A caller who acts for an agent uses the gateway."""
        caller = self._caller
        if caller.agent is not None:
            raise Forbidden(
                "this operation cannot call a tool for an agent",
                why=f"the caller acts for the agent {caller.agent!r:.200}",
                next="Call it through /mcp or /rpc with the agent's permissions, or use a key without an agent.",
            )
        entry = await self.tool(name)
        if self.is_admin or (allows_users(entry.tool.access, entry.permissions) and not entry.tool.approve):
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
        """Return the owner, if the caller may read its memories."""
        match named.scope:
            case "user":
                return Owner("user", await self.user(named.name), named.agent)
            case "session":
                return await self._session_owner(_require_name(named), named.agent)
            case "agent":
                return Owner("agent", _require_name(named), named.name)
            case "organization":
                return Owner("organization", named.name or "", named.agent)

    async def owner_to_change(self, named: OwnerName) -> Owner:
        """Return the owner, if the caller may change its memories."""
        owner = await self.owner(named)
        self._check_shared(owner)
        return owner

    async def memory(self, id: UUID) -> Memory:
        """Return the memory, if the caller may read it."""
        try:
            memory = await self._engine.memory.get(id)
        except NotFound:
            if self.is_admin:
                raise
        else:
            if await self._may_read(memory.owner) and await self._may_read_source(memory):
                return memory
        # Only an admin learns when and why a memory was deleted: its owner is no longer known.
        raise NotFound(f"there is no memory {id}", next="Search for it.")

    async def memory_to_change(self, id: UUID) -> Memory:
        """Return the memory, if the caller may change it."""
        memory = await self.memory(id)
        self._check_shared(memory.owner)
        return memory

    async def graph_owners(self, named: OwnerName | None) -> list[Owner]:
        """Return whose entities a caller sees: one owner's, or by default the caller's and the organization's.

        Entities come from all documents of an owner, so who may not read all of them sees none.
        """
        if await self.collections() is not None:
            raise Forbidden(
                f"the agent {self._caller.agent!r:.200} may not read the graph",
                why="the graph has entities of all documents, and its definition limits the collections that it reads",
                next="Search the documents instead, or use a key without an agent.",
            )
        if named is not None:
            if named.scope == "agent":
                self.agent(_require_name(named))
            return [await self.owner(named)]
        return [await self.owner(OwnerName()), organization()]

    async def entity_owners(self, id: UUID) -> list[Owner]:
        """Return whose entities the caller sees together with an entity, if the caller may read it."""
        owner = await self._engine.graph.owner(id)
        if not await self._may_read(owner) or self._is_other_agent(owner):
            raise NotFound(f"there is no entity {id}", next="Search for the entity to get its id.")
        return list(dict.fromkeys([owner, *await self.graph_owners(None)]))

    async def entity_to_change(self, id: UUID) -> None:
        """Check that the caller may merge an entity."""
        [owner, *_] = await self.entity_owners(id)
        self._check_shared(owner)

    async def merge_to_change(self, id: UUID) -> None:
        """Check that the caller may undo a merge."""
        owner = await self._engine.graph.merge_owner(id)
        if not await self._may_read(owner):
            raise NotFound(f"there is no merge {id}", next="List the merges of the entity.")
        self._check_shared(owner)

    def check_trust(self, trust: Trust | None) -> None:
        """Refuse the trust `system` to all but admins."""
        if trust == "system" and not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not store memories with the trust 'system'",
                why="that needs the scope 'admin'",
                next="Use 'user', 'agent', 'tool' or 'untrusted'.",
            )

    async def memory_owners(self, scope: Scope | None, *, limit: int, cursor: str | None) -> Page[OwnerMemories]:
        """List the owners whose memories the caller may read, one memory scope after the other.

        For callers who are not admins, the list does not reveal other users or their sessions.
        """
        places = range(len(SECTIONS)) if scope is None else [SECTIONS.index(scope)]
        first, behind = _place(cursor, places)
        found: list[OwnerMemories] = []
        for place in range(first, places[-1] + 1):
            if len(found) == limit:
                return Page(found, write_cursor(START, place))
            page = await self._owners_of(SECTIONS[place], limit=limit - len(found), cursor=behind)
            found += page
            if page.cursor is not None:
                return Page(found, write_cursor(read_cursor(page.cursor)[0], place))
            behind = None
        return Page(found)

    # Documents

    async def reader(self, owners: Sequence[DocumentOwner] | None = None) -> KnowledgeReader:
        """Return a reader of the documents of these owners, as far as the caller may read them.

        By default, they are those of the organization and of the caller, and of the agent that the caller acts for.
        """
        caller = self._caller
        if owners is None:
            found = readable_owners(user_name=caller.user, agent_name=caller.agent)
        else:
            found = tuple([await self.document_owner(each) for each in owners])
        return KnowledgeReader(self._engine.knowledge, found, await self.collections())

    async def document_owner(self, named: DocumentOwner) -> Owner:
        """Return the owner, if the caller may read its documents."""
        match named.scope:
            case "user":
                return Owner("user", await self.user(named.name))
            case "agent":
                return Owner("agent", self.agent(_require_name(named)))
            case "organization":
                return Owner("organization", named.name or "")

    async def document_owner_to_change(self, named: DocumentOwner, collection: str | None = None) -> Owner:
        """Return the owner, if the caller may change its documents in the collection, if one is named."""
        owner = await self.document_owner(named)
        self._check_shared(owner, "documents", "Add it for yourself: with the scope 'user'.")
        collections = await self.collections()
        if collection is not None and collections is not None and collection not in collections:
            raise Forbidden(
                f"the agent {self._caller.agent!r:.200} may not change the collection {collection!r:.200}",
                why="its definition does not have this collection",
                next="Use one of its collections, or a key without an agent.",
            )
        return owner

    async def whole_document_owner(self, named: DocumentOwner, *, to_change: bool) -> Owner:
        """Return the owner, if the caller may read or change all its documents, whatever their collection."""
        if await self.collections() is not None:
            raise Forbidden(
                f"the agent {self._caller.agent!r:.200} may not have all documents of an owner",
                why="its definition limits the collections that it reads",
                next="Use a key without an agent.",
            )
        return await (self.document_owner_to_change(named) if to_change else self.document_owner(named))

    async def document(self, id: UUID) -> Document:
        """Return the document, if the caller may read it."""
        found = await self._engine.knowledge.get(id)
        if not await self._may_read_document(found):
            raise unknown_document(id)
        return found

    async def document_to_change(self, id: UUID) -> Document:
        """Return the document, if the caller may change it."""
        found = await self.document(id)
        self._check_shared(found.owner, "documents", "Add one for yourself: with the scope 'user'.")
        return found

    async def research(self, id: UUID) -> ResearchRun:
        """Return the research, if it is the caller's. Who acts for an agent has only what this agent asked for."""
        run = await self._engine.research.get(id)
        if not self.is_admin and not (self.asks_as in (None, run.agent) and await self.is_caller(run.user)):
            raise unknown_research(id)
        return run

    @property
    def asks_as(self) -> str | None:
        """The agent to whose research the caller is limited; None if it is not limited."""
        return None if self.is_admin else self._caller.agent

    async def ingest_job(self, id: UUID) -> IngestJob:
        """Return the job, if the caller may read its document."""
        job = await self._engine.knowledge.job(id)
        if not await self._may_read_document(await self._engine.knowledge.get(job.document)):
            raise unknown_job(id)
        return job

    async def _may_read_document(self, document: Document) -> bool:
        collections = await self.collections()
        if collections is not None and document.collection not in collections:
            return False
        return not self._is_other_agent(document.owner) and await self._may_read(document.owner)

    def _is_other_agent(self, owner: Owner) -> bool:
        """Whether the owner is another agent than the one that the caller acts for."""
        return owner.scope == "agent" and self._caller.agent is not None and owner.name != self._caller.agent

    async def collections(self) -> tuple[str, ...] | None:
        """Return the collections that the agent reads for which the caller acts; None: all, or for no agent."""
        agent = self._caller.agent
        if agent is None:
            return None
        try:
            definition = await self._engine.definitions.get(agent)
        except NotFound:
            return ()
        return collections_of(definition.knowledge) if definition.active else ()

    async def within(self, collections: Sequence[str] | None, *, of_agent: str | None = None) -> Sequence[str] | None:
        """Return those of the collections that the caller may read; None: all.

        `of_agent`: documents of this agent are read, too. Who acts for another agent may read none of them.
        """
        if of_agent is not None and self._caller.agent not in (None, of_agent):
            return ()
        allowed = await self.collections()
        if allowed is None or collections is None:
            return allowed if collections is None else collections
        return [each for each in collections if each in allowed]

    async def _may_read_source(self, memory: Memory) -> bool:
        """Whether the caller may read the document of which a memory is a part, if it is one."""
        if memory.document is None:
            return True
        return await self._may_read_document(await self._engine.knowledge.get(memory.document))

    # Decisions

    async def _has(self, conversation: Conversation) -> bool:
        """Whether the caller may read and change a conversation."""
        return self.is_admin or await self.is_caller(conversation.user)

    async def _may_read_execution(self, execution: Execution) -> bool:
        """Whether the caller made an execution, or it belongs to a run in a conversation of the caller."""
        if execution.run_id is None:
            return await self.is_caller(execution.user)
        run = await self._engine.agents.runs.get(execution.run_id)
        return await self._has(await self._engine.conversations.get(run.conversation))

    async def _own_session(self, session_id: str) -> Conversation | None:
        """Return the caller's conversation of a session, or one without a user that the caller may adopt."""
        caller = self._caller
        return await self._engine.conversations.find(session_id=session_id, user=caller.user, adopts=caller.adopts)

    async def _may_read(self, owner: Owner) -> bool:
        if self.is_admin or owner.scope in SHARED:
            return True
        if owner.scope == "user":
            return await self.is_caller(owner.name)
        return owner.conversation is not None and await self._has(
            await self._engine.conversations.get(owner.conversation)
        )

    async def _session_owner(self, session_id: str, agent: str | None) -> Owner:
        try:
            conversation = await self.session(session_id)
        except NotFound:
            if not self.is_admin:
                raise
            return Owner("session", session_id, agent)  # an admin's first memory of it creates the session
        return Owner("session", session_id, agent, conversation.user, conversation.id)

    async def _owners_of(self, scope: Scope, *, limit: int, cursor: str | None) -> Page[OwnerMemories]:
        if self.is_admin or scope in SHARED:
            return await self._engine.memory.owners(scope, limit=limit, cursor=cursor)
        if scope == "user":
            return Page(await self._engine.memory.count_by_owner(scope, [self._caller.user]))
        return await self._own_sessions(limit=limit, cursor=cursor)

    async def _own_sessions(self, *, limit: int, cursor: str | None) -> Page[OwnerMemories]:
        """List the caller's sessions that have memories, the newest conversation first."""
        conversations = await self._engine.conversations.list(
            user=self._caller.user, limit=SESSIONS_READ, cursor=cursor
        )
        sessions = [
            Owner("session", conversation.session_id, None, conversation.user, conversation.id)
            for conversation in conversations
            if conversation.session_id
        ]
        owners = await self._engine.memory.count_by_owner("session", sessions)
        last = owners[limit - 1].owner.conversation if len(owners) > limit else None
        if last is not None:
            return Page(owners[:limit], write_cursor(last))
        return Page(owners, conversations.cursor)

    def _check_shared(
        self, owner: Owner, what: str = "memories", next: str = "Remember it for the user or the session."
    ) -> None:
        if owner.scope in SHARED and not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not change {what} of the {owner.scope}",
                why="all users share them, so this needs the scope 'admin'",
                next=next,
            )

    def _require_admin_to_write_as(self, speaker: str) -> None:
        if not self.is_admin:
            raise Forbidden(
                f"{self._caller.user!r} may not write as {speaker[:100]!r}",
                why="writing as another user or as the system needs the scope 'admin'",
                next=f"Write as {str(by_user(self._caller.user))!r}, or as an agent.",
            )


def _require_name(named: OwnerName | DocumentOwner) -> str:
    if named.name is None:
        what = "memories" if isinstance(named, OwnerName) else "documents"
        raise InvalidInput(f"the owner of the {what} in the scope {named.scope!r} is missing", next="Give a name.")
    return named.name


def _place(cursor: str | None, places: Sequence[int]) -> tuple[int, str | None]:
    """Return the index of the section in which a page begins, and the cursor inside that section."""
    if cursor is None:
        return places[0], None
    id, place = read_cursor(cursor)
    if place not in places:
        raise invalid_cursor(cursor)
    return place, None if id == START else write_cursor(id)
