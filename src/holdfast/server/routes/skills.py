"""Skills: what agents know how to do. What there is, every caller may know; what agents read of it is for admins.

Skills may be called anything. A path is decoded before it is taken apart, so a slash in a name, and with it the percent
sign, is encoded twice: as %252F and %2525.
"""

import asyncio
from dataclasses import asdict
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import unquote
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.server.attachments import BYTES, attachment
from holdfast.server.fields import HistoryCursor, NotBlank, SkillName, stated
from holdfast.server.operations import Call, Operations
from holdfast.server.routes.tools import ActiveChange
from holdfast.skills.drafts import MAX_LABEL
from holdfast.skills.finding import MAX_LIMIT, MAX_QUERY
from holdfast.skills.folders import read_folder, write_folder
from holdfast.skills.history import ChangeKind
from holdfast.skills.overlays import CONFIG_SCHEMA
from holdfast.skills.skill import Assignment, File, Link, Need, Skill
from holdfast.skills.skills import LARGEST_NUMBER
from holdfast.skills.tool import Access
from holdfast.skills.transfer import ImportedSkill

operations = Operations("skills")

MAX_PAGE = 200
LISTED, FOUND = 100, 10  # unless it is said how many
MAX_FOLDER_BYTES = 16 * 1024 * 1024  # of a request with a skill's files, in base64
MAX_CHANGES = 100  # each comes with what was there before and since

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
ChangeLimit = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHANGES)]
Number = Annotated[int, msgspec.Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Query = Annotated[NotBlank, msgspec.Meta(max_length=MAX_QUERY)]
Label = Annotated[NotBlank, msgspec.Meta(max_length=MAX_LABEL)]
Config = Annotated[dict[str, Any], stated(**CONFIG_SCHEMA)]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
LinkVersion = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class SkillSummary(msgspec.Struct, frozen=True):
    """A skill in a list; of one that was searched for, how well it answers, and no more."""

    name: str
    description: str
    active: bool
    score: float | None = None
    label: str | None = None
    parent: str | None = None


class SkillPage(msgspec.Struct, frozen=True):
    """Skills by name, and what the next page is asked for `after`; or what a search found, best first.

    `reduced` says why it was found by words alone, where it was.
    """

    skills: list[SkillSummary]
    cursor: str | None = None
    reduced: str = ""


class SkillFile(msgspec.Struct, frozen=True):
    """A file that lies beside a skill's instructions."""

    path: str
    bytes: int
    executable: bool


class SkillDetail(msgspec.Struct, frozen=True):
    """A skill: what an agent reads of it, what it works with, what it needs, and which agents have it."""

    id: UUID
    name: str
    description: str
    instructions: str
    label: str
    parent: str | None
    front_matter: dict[str, Any]
    origin: Literal["code", "db"]
    active: bool
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str
    files: list[SkillFile]
    tools: list[Link]
    needs: list[Need]
    agents: list[Assignment]


class SkillChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A skill to store. `version` is the one that is changed, null where there is none yet.

    `files` are contents in base64, by path. What is left out of a change stays as it is.
    """

    instructions: str
    description: str | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    parent: str | UnsetType | None = UNSET
    front_matter: dict[str, Any] | None = None
    files: dict[str, File] | None = None
    active: bool | UnsetType = UNSET
    version: Version | None = None


class SkillFolder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A skill as a folder: a SKILL.md and what lies beside it, contents in base64, by path.

    With `replace` it takes the place of a skill of its name.
    """

    files: Annotated[dict[str, File], stated(required=["SKILL.md"])]
    replace: bool = False


class SkillTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a skill works with a tool: `access` null grants what the tool takes; `config` overlays its calls.

    What is left out of a link that is there stays as it is.
    """

    access: Access | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    version: LinkVersion | None = None


class SkillNeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a skill needs another one: `required` to be loaded with it, or only when it is asked for.

    What is left out of one that is there stays as it is.
    """

    required: bool | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    version: LinkVersion | None = None


class AgentSkill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an agent has a skill: its place in the prompt, and what overlays calls of its tools.

    What is left out of one that it has stays as it is.
    """

    config: Config | UnsetType = UNSET
    priority: Number | UnsetType = UNSET
    sequence: Number | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    version: LinkVersion | None = None


class AgentSkillList(msgspec.Struct, frozen=True):
    """The skills of an agent, in the order in which its prompt has them."""

    skills: list[Assignment]


class RegistryChange(msgspec.Struct, frozen=True):
    """A change of the registry: what was there before, and what is there since."""

    revision: int
    number: int
    kind: ChangeKind
    name: str
    operation: Literal["created", "changed", "removed"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    by: str
    at: datetime


class RegistryHistory(msgspec.Struct, frozen=True):
    """Changes, the newest first, and what the next page is asked for `before`; null: there is none."""

    changes: list[RegistryChange]
    cursor: str | None


@operations.declare("GET", "/api/skills", needs="read")
async def list_skills(
    call: Call, query: Query | None = None, limit: Limit | None = None, after: str | None = None
) -> SkillPage:
    """Skills by name, or those that answer a `query`; to others than admins, those that are active."""
    if query is not None:
        found = await call.engine.finding.search(query, kinds=("skill",), limit=min(limit or FOUND, MAX_LIMIT))
        return SkillPage(
            [SkillSummary(each.name, each.description, True, each.score) for each in found], None, found.reduced
        )
    active = None if call.authorization.is_admin else True
    most = limit or LISTED
    skills = await call.engine.skills.list(limit=most + 1, after=after, active=active)
    page = [
        SkillSummary(skill.name, skill.description, skill.active, None, skill.label, skill.parent)
        for skill in skills[:most]
    ]
    return SkillPage(page, page[-1].name if len(skills) > most else None)


@operations.declare(
    "POST",
    "/api/skills/import",
    needs="admin",
    errors=[NotFound, AlreadyExists],
    max_body_bytes=MAX_FOLDER_BYTES,
)
async def import_skill(call: Call, body: SkillFolder) -> ImportedSkill:
    """Store the skill that a folder is, with its tools and what it needs: all of it, or nothing."""
    contents = {path: file.content for path, file in body.files.items()}
    folder = read_folder(contents, executable=[path for path, file in body.files.items() if file.executable])
    return await call.engine.skill_transfer.load(folder, replace=body.replace, by=call.principal.user)


@operations.declare("GET", "/api/skills/{name}", needs="admin", errors=[NotFound])
async def get_skill(call: Call, name: str) -> SkillDetail:
    """A skill, with all that an agent reads of it."""
    return await _detail(call, await call.engine.skills.get(unquote(name)))


@operations.declare(
    "PUT",
    "/api/skills/{name}",
    needs="admin",
    errors=[NotFound, AlreadyExists, Conflict],
    max_body_bytes=MAX_FOLDER_BYTES,
)
async def put_skill(call: Call, name: SkillName, body: SkillChange) -> SkillDetail:
    """Store a skill, or change one; those that a program declares are changed there."""
    given = {field: getattr(body, field) for field in body.__struct_fields__}
    return await _detail(call, await call.engine.skills.put(unquote(name), **given, by=call.principal.user))


@operations.declare(
    "DELETE", "/api/skills/{name}", needs="admin", status=204, errors=[NotFound, AlreadyExists, Conflict]
)
async def remove_skill(call: Call, name: str, version: Version | None = None) -> None:
    """Remove a skill that no other one needs; agents that had it do without."""
    await call.engine.skills.remove(unquote(name), version=version, by=call.principal.user)


@operations.declare("PUT", "/api/skills/{name}/active", needs="admin", errors=[NotFound, Conflict])
async def activate_skill(call: Call, name: str, body: ActiveChange) -> SkillDetail:
    """Have a skill be used or not, wherever it comes from."""
    skill = await call.engine.skills.activate(unquote(name), body.active, version=body.version, by=call.principal.user)
    return await _detail(call, skill)


@operations.declare("GET", "/api/skills/{name}/files/{path}", needs="admin", errors=[NotFound], response_format=BYTES)
async def get_skill_file(call: Call, name: str, path: str) -> Response:
    """A file that lies beside a skill's instructions."""
    file = await call.engine.skills.file(unquote(name), path)
    return attachment(file.content, PurePosixPath(path).name)


@operations.declare("GET", "/api/skills/{name}/export", needs="admin", errors=[NotFound])
async def export_skill(call: Call, name: str) -> SkillFolder:
    """A skill as a folder: its SKILL.md, and what lies beside it."""
    folder = await call.engine.skill_transfer.export(unquote(name))
    return SkillFolder(
        {path: File(content, path in folder.executable) for path, content in write_folder(folder).items()}
    )


@operations.declare("PUT", "/api/skills/{name}/tools/{tool}", needs="admin", errors=[NotFound, Conflict])
async def link_tool(call: Call, name: str, tool: str, body: SkillTool) -> Link:
    """Have a skill work with a tool."""
    return await call.engine.skills.link(
        unquote(name),
        tool,
        access=body.access,
        config=body.config,
        active=body.active,
        version=body.version,
        by=call.principal.user,
    )


@operations.declare("DELETE", "/api/skills/{name}/tools/{tool}", needs="admin", status=204, errors=[NotFound, Conflict])
async def unlink_tool(call: Call, name: str, tool: str, version: Version | None = None) -> None:
    """Have a skill do without a tool."""
    await call.engine.skills.unlink(unquote(name), tool, version=version, by=call.principal.user)


@operations.declare("PUT", "/api/skills/{name}/needs/{other}", needs="admin", errors=[NotFound, Conflict])
async def need_skill(call: Call, name: str, other: str, body: SkillNeed) -> Need:
    """Have a skill need another one; a circle is refused."""
    return await call.engine.skills.depend(
        unquote(name),
        unquote(other),
        required=body.required,
        active=body.active,
        version=body.version,
        by=call.principal.user,
    )


@operations.declare(
    "DELETE", "/api/skills/{name}/needs/{other}", needs="admin", status=204, errors=[NotFound, Conflict]
)
async def spare_skill(call: Call, name: str, other: str, version: Version | None = None) -> None:
    """Have a skill do without another one."""
    await call.engine.skills.undepend(unquote(name), unquote(other), version=version, by=call.principal.user)


@operations.declare("GET", "/api/agents/{agent}/skills", needs="admin", errors=[NotFound])
async def list_agent_skills(call: Call, agent: str) -> AgentSkillList:
    """The skills of an agent, in the order in which its prompt has them."""
    return AgentSkillList(await call.engine.skills.skills_of(agent))


@operations.declare("PUT", "/api/agents/{agent}/skills/{name}", needs="admin", errors=[NotFound, Conflict])
async def assign_skill(call: Call, agent: str, name: str, body: AgentSkill) -> Assignment:
    """Give a skill to an agent."""
    return await call.engine.skills.assign(
        agent,
        unquote(name),
        config=body.config,
        priority=body.priority,
        sequence=body.sequence,
        active=body.active,
        version=body.version,
        by=call.principal.user,
    )


@operations.declare(
    "DELETE", "/api/agents/{agent}/skills/{name}", needs="admin", status=204, errors=[NotFound, Conflict]
)
async def unassign_skill(call: Call, agent: str, name: str, version: Version | None = None) -> None:
    """Take a skill from an agent."""
    await call.engine.skills.unassign(agent, unquote(name), version=version, by=call.principal.user)


@operations.declare("GET", "/api/registry/history", needs="admin")
async def registry_history(
    call: Call,
    kind: ChangeKind | None = None,
    name: str | None = None,
    limit: ChangeLimit = 50,
    before: HistoryCursor | None = None,
) -> RegistryHistory:
    """Changes of agents, skills, tools, sources, secrets and their links, the newest first.

    A link is told under the name of the skill or the agent that has it.
    """
    found = await call.engine.history.of(kind, name, limit=limit + 1, before=before)
    changes = [msgspec.convert(change, RegistryChange, from_attributes=True) for change in found[:limit]]
    return RegistryHistory(changes, found[limit - 1].cursor if len(found) > limit else None)


async def _detail(call: Call, skill: Skill) -> SkillDetail:
    skills = call.engine.skills
    files, tools, needs, agents = await asyncio.gather(
        skills.file_sizes(skill.name),
        skills.tools_of(skill.name),
        skills.needs(skill.name),
        skills.agents_of(skill.name),
    )
    beside = [SkillFile(path, size, executable) for path, (size, executable) in files.items()]
    return SkillDetail(**asdict(skill), files=beside, tools=tools, needs=needs, agents=agents)
