"""Skills, notes, conversations and documents as resources."""

from collections.abc import Iterable

from holdfast.engine import Engine
from holdfast.gateway.builtin.conversations import MOST_READ, messages_of, own_conversation
from holdfast.gateway.builtin.knowledge import knowledge_resources
from holdfast.gateway.builtin.skills import open_skill
from holdfast.gateway.runs import authorization_of, caller_of, view_in
from holdfast.gateway.views import USER
from holdfast.skills.resource import McpResource, resource_of
from holdfast.skills.run import Run
from holdfast.skills.tools import MAX_LISTED

MARKDOWN = "text/markdown"
SKILL = "holdfast://skills/{name}"
NOTES = "holdfast://notes/{agent}"
CONVERSATION = "holdfast://conversations/{session_id}"
RECENT = 100  # newest conversations whose session ids are completed


def own_resources(engine: Engine) -> list[McpResource]:
    """Return the resources that every tenant has."""

    async def skill(name: str, run: Run) -> str:
        """The instructions of a skill."""
        instructions, _ = await open_skill(engine, run, name)
        return instructions

    async def notes(agent: str, run: Run) -> str:
        """What an agent has noted about you."""
        return (
            await engine.notes.read(user=caller_of(run).user, agent=authorization_of(engine, run).agent(agent))
        ).notes

    async def conversation(session_id: str, run: Run) -> str:
        """What was said in one of your conversations."""
        found = await own_conversation(engine, run, session_id)
        messages = messages_of(await engine.conversations.last(found.id, MOST_READ))
        return "\n\n".join(f"**{each['author']}**: {each['text']}" for each in messages)

    async def skill_names(typed: str, run: Run) -> list[str]:
        return _starting_with(typed, (name for name, _ in await skills_of(engine, run, limit=MAX_LISTED)))

    async def agent_names(typed: str, run: Run) -> list[str]:
        agents = await engine.definitions.list()
        return _starting_with(typed, (each.name for each in agents if each.active and run.agent in (None, each.name)))

    async def sessions(typed: str, run: Run) -> list[str]:
        conversations = await engine.conversations.list(user=caller_of(run).user, agent=run.agent, limit=RECENT)
        return _starting_with(typed, (each.session_id for each in conversations if each.session_id is not None))

    return [
        resource_of(skill, SKILL, mime_type=MARKDOWN, complete={"name": skill_names}),
        resource_of(notes, NOTES, mime_type=MARKDOWN, complete={"agent": agent_names}),
        resource_of(conversation, CONVERSATION, mime_type=MARKDOWN, complete={"session_id": sessions}),
        *knowledge_resources(engine),
    ]


async def skills_of(engine: Engine, run: Run, *, limit: int, after: str | None = None) -> list[tuple[str, str]]:
    """Return names and descriptions of the skills that a caller may read, sorted, those after the name `after`."""
    if run.agent is not None:
        catalog = await engine.catalogs.of(run.agent)
        names = sorted(name for name in catalog.by_name if after is None or name > after)
        return [(name, catalog.by_name[name].description) for name in names[:limit]]
    if view_in(run).who.kind == USER:
        return []
    skills = await engine.skills.list(limit=limit, after=after, active=True)
    return [(each.name, each.description) for each in skills]


def _starting_with(typed: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(typed)]
