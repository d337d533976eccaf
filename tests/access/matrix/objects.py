"""The objects that callers name: how one of each kind is made, and what names one that is missing.

What belongs to somebody has their mark in it, `mark-of-ann`: an answer to a caller may have the marks alone that they
may see. `{sign}` is what an answer shows of an object.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from holdfast.conversations import Conversation
from holdfast.core.ids import uuid7
from holdfast.core.words import terms
from holdfast.engine import Engine
from holdfast.execution.consent.clients import PublicAddress
from holdfast.memory import Owner, agent, organization, session, user
from holdfast.memory.owners import Owners
from holdfast.skills.request import BackendIdentity
from tests.server import mcp_wire

if TYPE_CHECKING:
    from tests.access.matrix.world import World

AGENT = "support"  # nobody serves it: what is said to it waits
SUBJECT = "zebra"  # what objects are about, unless a search is to find these alone
REFERENCE = f"{__name__}:repeat"
ANSWER = {"responses": {"200": {"description": "so"}}}
# A document of one chunk that was ingested: nothing in the background has to be waited for.
INGESTED = """
with new as (
  insert into document (tenant_id, scope, owner, collection, name, version, hash, splitting, status, chunks, characters)
  values ($1, $2, $3, $4, $5, 1, '\\x00', '512/50', 'ready', 1, length($6)) returning id
), part as (
  insert into chunk (tenant_id, document_id, chunk_index, id, first_page, last_page, char_start, char_end, tokens,
    length, language, digest, passages, marks, content)
  select $1, id, 0, $8, 1, 1, 0, length($6), 10, 10, 'en', gen_random_uuid(), array[0, length($6)],
    '[[0, 1, 0, ""]]', $6
  from new
), words as (
  insert into chunk_term (tenant_id, term, document_id, chunks) select $1, t, id, '{0}' from new, unnest($7::bigint[]) t
)
select id from new
"""
FAILED = """
insert into ingest_job (tenant_id, document_id, hash, splitting, state, error)
values ($1, $2, '\\x00', '512/50', 'failed', 'so') returning id
"""
LOST = """
insert into tool_executions (tenant_id, id, tool, tool_id, input_params, status, user_name)
values ($1, $2, $3, $4, $5, 'unknown', $6)
"""

Fields = dict[str, str]

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object is made, and for whom; `named` is a user of that place who is nowhere else."""

    world: "World"
    engine: Engine
    user: str
    named: str
    owner: str  # as the marks have it
    key: str  # of the user
    tenant: str
    subject: str  # what it is about

    @property
    def mark(self) -> str:
        """What is in all that belongs to the owner."""
        return f"mark-of-{self.owner}"

    @property
    def secret(self) -> str:
        """What is in all that only an admin of the tenant may see."""
        return "mark-of-admin" if self.tenant == "default" else self.mark


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object; `missing` makes the fields of one that is not there."""

    name: str
    make: Callable[[Place], Awaitable[Fields]]
    missing: Mapping[str, Callable[[], str]]

    def absent(self) -> Fields:
        """The fields of an object that is missing."""
        return {"named": "zoe", "sign": word(), **{name: make() for name, make in self.missing.items()}}


def kind(**missing: Callable[[], str]) -> Callable[[Callable[[Place], Awaitable[Fields]]], Kind]:
    """Make a kind of a function that makes such objects."""
    return lambda make: Kind(make.__name__, make, missing)


def new_id() -> str:
    """An id that nothing has."""
    return str(uuid7())


def word() -> str:
    """A name that nothing has."""
    return unique("missing")


def fixed(text: str) -> Callable[[], str]:
    """A field that is the same for every object."""
    return lambda: text


def unique(name: str) -> str:
    """A name that nothing else has, and that is a part of no other."""
    return f"{name}-{next(_numbers):06}"


async def repeat(text: str = "") -> str:
    """Say it again."""
    return text


# What users have


async def begin_conversation(at: Place, agent: str | None = AGENT) -> Conversation:
    """A conversation in which something was said."""
    talk = await at.engine.conversations.create(
        user=at.user, agent=agent, session_id=unique("session"), state={"plan": at.mark}
    )
    await at.engine.conversations.append(talk.id, at.mark, context=f"text:user:{at.user}")
    return talk


@kind(id=new_id, session=word)
async def conversation(at: Place) -> Fields:
    """A conversation."""
    talk = await begin_conversation(at)
    return {"id": str(talk.id), "session": talk.session_id or ""}


@kind(id=new_id, session=word)
async def nobodys_conversation(at: Place) -> Fields:
    """A conversation without a user, as a client of LangChain leaves it."""
    talk = await at.engine.conversations.create(session_id=unique("session"))
    await at.engine.conversations.append(talk.id, at.mark, context="text:user:someone")
    return {"id": str(talk.id), "session": talk.session_id or ""}


@kind(session=word)
async def own_session(at: Place) -> Fields:
    """A conversation that goes by the id of its session."""
    talk = await begin_conversation(at)
    return {"session": talk.session_id or "", "sign": talk.session_id or ""}


@kind(session=word)
async def active_session(at: Place) -> Fields:
    """A session that its user is in."""
    talk = await begin_conversation(at)
    assert talk.session_id is not None
    await at.engine.sessions.activate(user=at.user, agent=AGENT, session_id=talk.session_id)
    return {"session": talk.session_id, "sign": talk.session_id}


@kind(id=new_id, document=new_id)
async def node(at: Place) -> Fields:
    """A node of a document, the second of two."""
    talks, context = at.engine.conversations, f"text:user:{at.user}"
    document = await talks.create(user=at.user, document=True)
    _, made = [await talks.append(document.id, at.mark, context=context) for _ in range(2)]
    return {"id": str(made.id), "document": str(document.id)}


@kind(id=new_id)
async def system_node(at: Place) -> Fields:
    """What the system said in a user's conversation."""
    talk = await begin_conversation(at)
    said = await at.engine.conversations.append(talk.id, at.mark, context="text:system:holdfast")
    return {"id": str(said.id)}


@kind(id=new_id, number=fixed("1"))
async def turn(at: Place) -> Fields:
    """A claim on a conversation."""
    talk = await begin_conversation(at)
    claim = await at.engine.turns.claim(talk.id)
    return {"id": str(talk.id), "number": str(claim.number)}


@kind(id=new_id, session=word, agent=fixed(AGENT))
async def run(at: Place) -> Fields:
    """A run that waits for somebody to serve its agent."""
    said = unique("session")
    sent = await at.engine.agents.send(AGENT, at.mark, user=at.user, session_id=said)
    return {"id": str(sent.run_id), "session": said, "agent": AGENT, "conversation": str(sent.conversation)}


@kind(id=new_id, session=word, agent=fixed(AGENT))
async def cancelled_run(at: Place) -> Fields:
    """A run that was cancelled."""
    made = await run.make(at)
    await at.engine.agents.cancel(UUID(made["id"]))
    return made


@kind(id=new_id, run=new_id, session=word, agent=fixed("desk"))
async def approval(at: Place) -> Fields:
    """A call of an agent that waits for a person; it called another tool before."""
    return await at.world.take_approval(at)


@kind(id=new_id)
async def execution_of_run(at: Place) -> Fields:
    """A call of a tool that an agent made."""
    return {"id": (await at.world.take_approval(at))["execution"]}


@kind(id=new_id)
async def execution(at: Place) -> Fields:
    """A call of a tool that its user made directly."""
    tool = await at.world.repeat_tool(at)
    made = await at.engine.executions.call(tool, {"text": at.mark}, user=at.user)
    assert made.status == "done", made
    return {"id": str(made.id)}


@kind(id=new_id)
async def lost_execution(at: Place) -> Fields:
    """A call that its user made, of which nobody knows the end."""
    id, entry = new_id(), await at.engine.tools.get(await at.world.repeat_tool(at))
    await at.engine.database.run(LOST, id, entry.tool.name, entry.id, {"text": at.mark}, at.user)
    return {"id": id}


@kind(id=new_id)
async def memory(at: Place) -> Fields:
    """A memory of a user."""
    made = await at.engine.memory.remember(user(at.user), f"{at.subject} {at.mark} {unique('memory')}")
    return {"id": str(made.id), "sign": made.content.split()[-1]}


@kind(id=new_id)
async def system_memory(at: Place) -> Fields:
    """A memory of a user that the system vouches for."""
    made = await at.engine.memory.remember(user(at.user), f"{at.mark} {unique('memory')}", trust="system")
    return {"id": str(made.id)}


@kind(id=new_id, session=word)
async def session_memory(at: Place) -> Fields:
    """A memory of a session."""
    talk = await begin_conversation(at)
    assert talk.session_id is not None
    owner = session(talk.session_id, user=at.user, conversation=talk.id)
    made = await at.engine.memory.remember(owner, f"{at.subject} {at.mark} {talk.session_id}")
    return {"id": str(made.id), "session": talk.session_id, "sign": talk.session_id}


@kind(agent=fixed(AGENT))
async def notes(at: Place) -> Fields:
    """What the agent has noted about a user."""
    sign = unique("note")
    await at.engine.notes.edit(user=at.user, agent=AGENT, operation="overwrite", content=f"{at.mark} {sign}")
    return {"sign": sign}


@kind(agent=word)
async def notes_of_user(at: Place) -> Fields:
    """What an agent of no other use has noted about a user by name."""
    sign, name = unique("note"), unique("agent")
    await at.engine.notes.edit(user=at.named, agent=name, operation="overwrite", content=f"{at.mark} {sign}")
    return {"agent": name, "sign": sign}


@kind(session=word)
async def mcp_session(at: Place) -> Fields:
    """A session of an MCP client."""
    return {"session": await mcp_wire.begin(at.world.site, key=at.key)}


@kind(session=word)
async def sse_session(at: Place) -> Fields:
    """A session of an MCP client that is its stream."""
    _, address = await at.world.stack.enter_async_context(mcp_wire.sse(at.world.site, key=at.key))
    return {"session": address.partition("session_id=")[2]}


# What a tenant has


@kind(id=new_id)
async def agent_memory(at: Place) -> Fields:
    """A memory of an agent."""
    made = await at.engine.memory.remember(agent(AGENT), f"{at.subject} {at.mark} {unique('memory')}")
    return {"id": str(made.id), "agent": AGENT, "sign": made.content.split()[-1]}


@kind(id=new_id)
async def organization_memory(at: Place) -> Fields:
    """A memory of the organization."""
    made = await at.engine.memory.remember(organization(), f"{at.subject} {at.mark} {unique('memory')}")
    return {"id": str(made.id), "sign": made.content.split()[-1]}


@kind(id=new_id, other=new_id, merge=new_id, sign=word, partner=word)
async def entity(at: Place) -> Fields:
    """An entity that a memory of a user names, with one that may be merged into it."""
    return await _entities(at, user(at.user))


@kind(id=new_id, other=new_id, merge=new_id, sign=word, partner=word)
async def shared_entity(at: Place) -> Fields:
    """An entity that a memory of the organization names, with one that may be merged into it."""
    return await _entities(at, organization())


async def _entities(at: Place, owner: Owner) -> Fields:
    sign, other, alias = (f"{unique('entity')}@example.com" for _ in range(3))
    graph = at.engine.graph
    await at.engine.memory.remember(owner, f"{sign} wrote to {other} and to {alias}. {at.mark}")
    ids = [(await graph.search(name, owners=[owner], limit=1))[0].entity.id for name in (sign, other, alias)]
    merge = await graph.merge(ids[0], ids[2])
    return {"id": str(ids[0]), "other": str(ids[1]), "merge": str(merge), "sign": sign, "partner": other}


@kind(name=fixed("no-such-tenant"))
async def tenant(at: Place) -> Fields:
    """A tenant, of which metrics tell."""
    await topic.make(at)
    return {"name": at.tenant, "sign": f'"{at.tenant}"'}


@kind(id=new_id)
async def key(at: Place) -> Fields:
    """A key of a tenant."""
    tenant = await at.engine.tenants.id_of(at.tenant)
    made = await at.engine.keys.create(tenant, "carol", scopes=frozenset({"read"}), label=at.secret)
    return {"id": str(made.key.id)}


@kind(link=word)
async def link(at: Place) -> Fields:
    """A link that signs a browser in."""
    tenant = await at.engine.tenants.id_of(at.tenant)
    return {"link": await at.engine.keys.create_link(tenant, at.user, scopes=frozenset({"read"}))}


@kind(name=word)
async def access_rule(at: Place) -> Fields:
    """An access rule on trial, about a tool that is not there."""
    name = unique("rule")
    await at.engine.rules.add(f'{name}: dry-run deny tool "{name}" because "{at.secret}"')
    return {"name": name, "sign": name}


@kind(name=word, agent=word)
async def stored_agent(at: Place) -> Fields:
    """An agent that is a row."""
    name = unique("agent")
    await at.engine.definitions.put(name, instructions=at.secret, description=at.mark)
    return {"name": name, "agent": name, "sign": name}


@kind(name=word)
async def hidden_agent(at: Place) -> Fields:
    """An agent that is switched off."""
    name = unique("agent")
    await at.engine.definitions.put(name, instructions=at.secret, description=at.secret, active=False)
    return {"name": name, "sign": name}


@kind(name=word, tool=word, other=word, agent=fixed(AGENT))
async def skill(at: Place) -> Fields:
    """A skill that the agent has, with a file, a tool, and another skill that it needs."""
    name, other, tool = unique("skill"), unique("skill"), await at.world.repeat_tool(at)
    await at.engine.skills.put(other, instructions=at.mark, description="Another")
    await at.engine.skills.put(name, instructions=at.mark, description=at.subject, files={"notes.txt": b"text"})
    await at.engine.skills.depend(name, other)
    await at.engine.skills.link(name, tool)
    await at.engine.skills.assign(AGENT, name)
    return {"name": name, "other": other, "tool": tool, "agent": AGENT, "sign": name}


@kind(name=word)
async def other_skill(at: Place) -> Fields:
    """A skill that no agent has."""
    name = unique("skill")
    await at.engine.skills.put(name, instructions=at.mark, description=at.subject)
    return {"name": name, "sign": name}


@kind(name=word)
async def hidden_skill(at: Place) -> Fields:
    """A skill that is switched off."""
    name = unique("skill")
    await at.engine.skills.put(name, instructions=at.secret, description=at.secret, active=False)
    return {"name": name, "sign": name}


async def ingest(at: Place, owner: Owner, collection: str = "default") -> Fields:
    """A document of an owner."""
    name = unique("document")
    text = f"{at.subject} {at.mark} {name}"
    ids = await Owners(at.engine.database, at.engine.identities).store_ids(owner)
    chunk = new_id()
    id = await at.engine.database.value(INGESTED, ids.scope, ids.id, collection, name, text, terms(text), UUID(chunk))
    return {
        "id": str(id), "document": name, "collection": collection, "page": "1", "chunk": chunk, "sign": name,
    }  # fmt: skip


NO_DOCUMENT = {"document": word, "collection": fixed("default"), "page": fixed("1"), "chunk": new_id}


@kind(id=new_id, **NO_DOCUMENT)
async def user_document(at: Place) -> Fields:
    """A document of a user."""
    return await ingest(at, user(at.user))


@kind(id=new_id, **NO_DOCUMENT)
async def agent_document(at: Place) -> Fields:
    """A document of an agent."""
    return await ingest(at, agent(AGENT))


@kind(id=new_id, **NO_DOCUMENT)
async def organization_document(at: Place) -> Fields:
    """A document of the organization."""
    return await ingest(at, organization())


@kind(id=new_id, **{**NO_DOCUMENT, "collection": fixed("closed")})
async def closed_document(at: Place) -> Fields:
    """A document of the organization, in a collection that the agent does not have."""
    return await ingest(at, organization(), "closed")


@kind(id=new_id, collection=word)
async def collection(at: Place) -> Fields:
    """A collection of the organization that the agent does not have."""
    made = await ingest(at, organization(), unique("collection"))
    return {**made, "sign": made["collection"]}


@kind(id=new_id)
async def research(at: Place) -> Fields:
    """Research of a user that has ended: there was nothing to read."""
    owner = user(f"{at.user} without documents")
    made = await at.engine.research.start(f"{at.subject} {at.mark}", user=at.user, owners=[owner])
    ended = await at.engine.research.wait(made.id)
    assert ended.state == "failed", ended
    return {"id": str(made.id), "sign": str(made.id)}


async def fail_job(at: Place, made: Fields) -> Fields:
    """A job of a document that failed."""
    id = str(await at.engine.database.value(FAILED, UUID(made["id"])))
    return {**made, "id": id, "sign": id}


@kind(id=new_id)
async def user_job(at: Place) -> Fields:
    """A job of a user's document."""
    return await fail_job(at, await user_document.make(at))


@kind(id=new_id)
async def organization_job(at: Place) -> Fields:
    """A job of a document of the organization."""
    return await fail_job(at, await organization_document.make(at))


async def register_tool(at: Place, name: str, **more: Any) -> Fields:
    """A tool that is called as a service, too."""
    entry = await at.engine.tools.put(
        name, description=f"{at.subject} {at.mark}", parameters={"type": "object", "properties": {"text": {}}},
        kind="function", reference=REFERENCE, mode="inline", service=f"shop/{name}/say/1.0", **more,
    )  # fmt: skip
    return {"name": entry.tool.name, "sign": name}


@kind(name=word)
async def tool(at: Place) -> Fields:
    """A tool that every user and every agent may call, and that only reads."""
    return await register_tool(
        at, unique("tool"), access="read", permissions={"users": "execute", "default": "execute"}
    )


@kind(name=word)
async def closed_tool(at: Place) -> Fields:
    """A tool that no user may call by hand."""
    return await register_tool(at, unique("tool"))


@kind(name=word)
async def hidden_tool(at: Place) -> Fields:
    """A tool that is switched off."""
    return await register_tool(at, unique("tool"), active=False, permissions={"users": "execute"})


def document(path: str) -> str:
    """A document of an API with one operation."""
    paths = {path: {"get": {"x-ai-enabled": True, **ANSWER}}}
    info, servers = {"title": "Shop", "version": "1"}, [{"url": "https://shop.example.com"}]
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": servers, "paths": paths})


@kind(name=word, path=fixed("/nowhere"))
async def source(at: Place) -> Fields:
    """A source of tools."""
    name = unique("source")
    await at.engine.sources.add(name, document=document(f"/{name}").encode())
    return {"name": name, "document": document(f"/{name}"), "sign": name}


@kind(name=word, tool=word, hash=fixed("0" * 64))
async def proposal(at: Place) -> Fields:
    """A definition of a tool that is held."""
    made = await source.make(at)
    changed = json.loads(made["document"])
    changed["paths"][f"/{made['name']}"]["get"]["summary"] = made["name"]
    report = await at.engine.sources.reload(made["name"], document=json.dumps(changed).encode())
    return {**made, "tool": report.held[0].name, "hash": report.held[0].hash}


@kind(name=word, revision=lambda: str(10**9 + next(_numbers)))
async def source_import(at: Place) -> Fields:
    """The import of a source."""
    made = await source.make(at)
    (imported,) = await at.engine.sources.imports.list(made["name"])
    return {**made, "revision": str(imported.revision)}


async def consent_source_of(at: Place) -> str:
    """A source that needs the consent of users, whose authorization server is not asked before they agree."""
    name, host = unique("source"), "https://shop.example.com"
    identity = BackendIdentity(
        "user", client_id="holdfast", authorize_url=f"{host}/authorize", token_url=f"{host}/token"
    )
    await at.engine.sources.add(name, document=document(f"/{name}").encode(), base_url=host, identity=identity)
    return name


@kind(source=word)
async def consent_source(at: Place) -> Fields:
    """A source that needs the consent of users."""
    name = await consent_source_of(at)
    return {"source": name, "sign": name}


@kind(source=word)
async def connection(at: Place) -> Fields:
    """The connection of a user with a source. Its scope tells whose it is."""
    name, scope = await consent_source_of(at), unique("scope")
    await at.engine.database.run(
        "insert into source_connection"
        " (host_id, source_id, user_name, sealed, key_id, origin, issuer, scopes, refreshable)"
        " select $1, source_id, $3, '', '', '', '', array[$4], false from tool_source where host_id = $1 and name = $2",
        name,
        at.user,
        scope,
    )
    return {"source": name, "sign": scope}


@kind(state=word)
async def begun_connection(at: Place) -> Fields:
    """A connection that a user has begun, with the state that the browser brings back."""
    name = await consent_source_of(at)
    begun = await at.engine.connections.begin(name, at.user, PublicAddress("http://127.0.0.1"))
    return {"state": dict(parse_qsl(urlsplit(begun.url).query))["state"], "sign": name}


@kind(name=word)
async def secret(at: Place) -> Fields:
    """A secret of a back end."""
    name = unique("secret")
    await at.engine.secrets.set(name, "mark-of-secret")
    return {"name": name, "sign": name}


@kind(name=lambda: f"user {word()}: requests per day")
async def limit(at: Place) -> Fields:
    """A rate limit of a user."""
    limits = await at.engine.quotas.limits()
    made = await limits.set(f"user {unique('limited')}: 9 requests per day", by="boss")
    return {"name": made.name, "rule": made.rule, "sign": made.name}


@kind(name=word, group=word)
async def topic(at: Place) -> Fields:
    """A topic with a record, and a group that has read it."""
    name, group = unique("topic"), unique("group")
    await at.engine.log.create(name, partitions=1)
    await at.engine.log.publish(name, value={"text": at.secret})
    async with at.engine.log.subscribe([name], group=group):
        pass
    return {"name": name, "group": group, "sign": name}


@kind(id=new_id)
async def dead_letter(at: Place) -> Fields:
    """A record that a group could not process."""
    made = await topic.make(at)
    async with at.engine.log.subscribe([made["name"]], group=made["group"]) as records:
        for record in await records.batch():
            await records.fail(record, at.secret)
    (letter,) = await at.engine.dead_letters.list(topic=made["name"])
    return {"id": str(letter.id), "group": made["group"]}


@kind(id=word)
async def command(at: Place) -> Fields:
    """A command that waits for a worker."""
    return {"id": await at.engine.commands.submit(AGENT, {"text": at.secret}, correlation_id=unique("command"))}
