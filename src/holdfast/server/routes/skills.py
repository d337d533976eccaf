"""Skills: every caller can list the active ones; their content and all changes need the scope `admin`.

Names of skills can contain slashes.
"""

import asyncio
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict
from starlette.responses import Response

from holdfast.core.errors import AlreadyExists, Conflict, NotFound
from holdfast.server.attachments import BYTES, attachment
from holdfast.server.fields import (
    TWICE_ENCODED,
    HistoryCursor,
    Limit,
    NotBlank,
    Number,
    RegistryQuery,
    RegistryVersion,
    SkillName,
    documented,
)
from holdfast.server.operations import ApiCall, ApiOperations
from holdfast.server.routes.tools import ActiveChange
from holdfast.skills.folders import read_folder, write_folder
from holdfast.skills.history import ChangeKind, ChangeRecord
from holdfast.skills.overlays import CONFIG_SCHEMA
from holdfast.skills.registry_columns import MAX_LABEL
from holdfast.skills.search import MAX_LIMIT
from holdfast.skills.skill import Assignment, Skill, SkillContent, SkillDependency, SkillFile, ToolLink
from holdfast.skills.skill_transfer import ImportedSkill
from holdfast.skills.skills import LARGEST_NUMBER
from holdfast.skills.tool import Access

operations = ApiOperations("skills")

LISTED, FOUND = 100, 10  # default limits of a list and of a search
MAX_FOLDER_BYTES = 16 * 1024 * 1024  # of a request with a skill's files, in base64
MAX_CHANGES = 100  # each includes the old and the new value

AnySkillName = Annotated[str, TWICE_ENCODED]
ChangeLimit = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHANGES)]
Rank = Annotated[int, msgspec.Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Label = Annotated[NotBlank, msgspec.Meta(max_length=MAX_LABEL)]
Config = Annotated[dict[str, Any], documented(**CONFIG_SCHEMA)]


class SkillSummary(msgspec.Struct, frozen=True):
    """A skill in a list. A search result has a `score`, but no `label` and no `parent`."""

    name: str
    description: str
    active: bool
    score: float | None = None
    label: str | None = None
    parent: str | None = None


class SkillPage(msgspec.Struct, frozen=True):
    """Skills by name, or the results of a search, best first. If the search used words only, `reduced` says why.

    Pass `cursor` as `after` to get the next page; it is null on the last page and for a search.
    """

    skills: list[SkillSummary]
    cursor: str | None = None
    reduced: str = ""


@dataclass(frozen=True, slots=True)
class SkillDetail(Skill):
    """A skill with its instructions, files, tools, dependencies and agents."""

    files: list[SkillFile]
    tools: list[ToolLink]
    needs: list[SkillDependency]
    agents: list[Assignment]


class SkillChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A skill to store. To change a skill, send its current `version`; for a new one, send null.

    `files`: contents in base64, by path. Omitted fields are unchanged.
    """

    instructions: str
    description: str | UnsetType = UNSET
    label: Label | UnsetType = UNSET
    parent: str | UnsetType | None = UNSET
    front_matter: dict[str, Any] | None = None
    files: dict[str, SkillContent] | None = None
    active: bool | UnsetType = UNSET
    version: RegistryVersion | None = None


class SkillFolder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A skill as a folder: SKILL.md and other files, by path, with contents in base64.

    `replace`: replace an existing skill of the same name.
    """

    files: Annotated[dict[str, SkillContent], documented(required=["SKILL.md"])]
    replace: bool = False


class SkillTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link from a skill to a tool. A null `access` grants what the tool requires. `config` overlays its calls.

    Omitted fields of an existing link are unchanged.
    """

    access: Access | UnsetType | None = UNSET
    config: Config | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    version: Number | None = None


class SkillNeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dependency on another skill. A `required` skill is loaded with it, an optional one only on request.

    Omitted fields of an existing dependency are unchanged.
    """

    required: bool | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    version: Number | None = None


class AgentSkill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The assignment of a skill to an agent: its position in the prompt, and an overlay for calls of its tools.

    Omitted fields of an existing assignment are unchanged.
    """

    config: Config | UnsetType = UNSET
    priority: Rank | UnsetType = UNSET
    sequence: Rank | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    version: Number | None = None


class AgentSkillList(msgspec.Struct, frozen=True):
    """The skills of an agent, in the order of its prompt."""

    skills: list[Assignment]


class RegistryHistory(msgspec.Struct, frozen=True):
    """Changes, newest first. Pass `cursor` as `before` to get the next page; it is null on the last page."""

    changes: list[ChangeRecord]
    cursor: str | None


@operations.declare("GET", "/api/skills", needs="read")
async def list_skills(
    call: ApiCall, query: RegistryQuery | None = None, limit: Limit | None = None, after: str | None = None
) -> SkillPage:
    """List skills by name, or search them with `query`. Only an admin gets inactive ones."""
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
async def import_skill(call: ApiCall, body: SkillFolder) -> ImportedSkill:
    """Import a skill from a folder, with its links to tools and other skills: all or nothing."""
    contents = {path: file.content for path, file in body.files.items()}
    folder = read_folder(contents, executable=[path for path, file in body.files.items() if file.executable])
    return await call.engine.skill_transfer.load(folder, replace=body.replace, by=call.principal.user)


@operations.declare("GET", "/api/skills/{name}", needs="admin", errors=[NotFound])
async def get_skill(call: ApiCall, name: AnySkillName) -> SkillDetail:
    """Get a skill with its instructions, files and links."""
    return await _detail(call, await call.engine.skills.get(name))


@operations.declare(
    "PUT",
    "/api/skills/{name}",
    needs="admin",
    errors=[NotFound, AlreadyExists, Conflict],
    max_body_bytes=MAX_FOLDER_BYTES,
)
async def put_skill(call: ApiCall, name: Annotated[SkillName, TWICE_ENCODED], body: SkillChange) -> SkillDetail:
    """Create or change a stored skill. A skill declared in an app can only be changed there."""
    return await _detail(call, await call.engine.skills.put(name, **asdict(body), by=call.principal.user))


@operations.declare(
    "DELETE", "/api/skills/{name}", needs="admin", status=204, errors=[NotFound, AlreadyExists, Conflict]
)
async def remove_skill(call: ApiCall, name: AnySkillName, version: RegistryVersion | None = None) -> None:
    """Remove a skill, also from its agents. No other skill may depend on it or have it as its parent."""
    await call.engine.skills.remove(name, version=version, by=call.principal.user)


@operations.declare("PUT", "/api/skills/{name}/active", needs="admin", errors=[NotFound, Conflict], audit=["active"])
async def activate_skill(call: ApiCall, name: AnySkillName, body: ActiveChange) -> SkillDetail:
    """Enable or disable a skill, stored or declared in an app."""
    skill = await call.engine.skills.activate(name, **asdict(body), by=call.principal.user)
    return await _detail(call, skill)


@operations.declare("GET", "/api/skills/{name}/files/{path}", needs="admin", errors=[NotFound], response_format=BYTES)
async def get_skill_file(call: ApiCall, name: AnySkillName, path: str) -> Response:
    """Download a file of a skill."""
    file = await call.engine.skills.file(name, path)
    return attachment(file.content, PurePosixPath(path).name)


@operations.declare("GET", "/api/skills/{name}/export", needs="admin", errors=[NotFound], audit=True)
async def export_skill(call: ApiCall, name: AnySkillName) -> SkillFolder:
    """Export a skill as a folder: its SKILL.md and its other files."""
    folder = await call.engine.skill_transfer.export(name)
    return SkillFolder(
        {path: SkillContent(content, path in folder.executable) for path, content in write_folder(folder).items()}
    )


@operations.declare("PUT", "/api/skills/{name}/tools/{tool}", needs="admin", errors=[NotFound, Conflict])
async def link_tool(call: ApiCall, name: AnySkillName, tool: str, body: SkillTool) -> ToolLink:
    """Link a tool to a skill, or change the link."""
    return await call.engine.skills.link(name, tool, **asdict(body), by=call.principal.user)


@operations.declare("DELETE", "/api/skills/{name}/tools/{tool}", needs="admin", status=204, errors=[NotFound, Conflict])
async def unlink_tool(call: ApiCall, name: AnySkillName, tool: str, version: RegistryVersion | None = None) -> None:
    """Remove the link of a skill to a tool."""
    await call.engine.skills.unlink(name, tool, version=version, by=call.principal.user)


@operations.declare("PUT", "/api/skills/{name}/needs/{other}", needs="admin", errors=[NotFound, Conflict])
async def need_skill(call: ApiCall, name: AnySkillName, other: AnySkillName, body: SkillNeed) -> SkillDependency:
    """Add or change a dependency on another skill. Circular dependencies are rejected."""
    return await call.engine.skills.depend(name, other, **asdict(body), by=call.principal.user)


@operations.declare(
    "DELETE", "/api/skills/{name}/needs/{other}", needs="admin", status=204, errors=[NotFound, Conflict]
)
async def spare_skill(
    call: ApiCall, name: AnySkillName, other: AnySkillName, version: RegistryVersion | None = None
) -> None:
    """Remove a dependency on another skill."""
    await call.engine.skills.undepend(name, other, version=version, by=call.principal.user)


@operations.declare("GET", "/api/agents/{agent}/skills", needs="admin", errors=[NotFound])
async def list_agent_skills(call: ApiCall, agent: str) -> AgentSkillList:
    """List the skills of an agent, in the order of its prompt."""
    return AgentSkillList(await call.engine.skills.skills_of(agent))


@operations.declare("PUT", "/api/agents/{agent}/skills/{name}", needs="admin", errors=[NotFound, Conflict])
async def assign_skill(call: ApiCall, agent: str, name: AnySkillName, body: AgentSkill) -> Assignment:
    """Assign a skill to an agent, or change the assignment."""
    return await call.engine.skills.assign(agent, name, **asdict(body), by=call.principal.user)


@operations.declare(
    "DELETE", "/api/agents/{agent}/skills/{name}", needs="admin", status=204, errors=[NotFound, Conflict]
)
async def unassign_skill(call: ApiCall, agent: str, name: AnySkillName, version: RegistryVersion | None = None) -> None:
    """Remove a skill from an agent."""
    await call.engine.skills.unassign(agent, name, version=version, by=call.principal.user)


@operations.declare("GET", "/api/registry/history", needs="admin")
async def registry_history(
    call: ApiCall,
    kind: ChangeKind | None = None,
    name: str | None = None,
    limit: ChangeLimit = 50,
    before: HistoryCursor | None = None,
) -> RegistryHistory:
    """List changes of agents, skills, tools, sources, secrets and their links, newest first.

    A link is listed under the name of its skill or agent.
    """
    found = await call.engine.history.of(kind, name, limit=limit + 1, before=before)
    return RegistryHistory(found[:limit], found[limit - 1].cursor if len(found) > limit else None)


async def _detail(call: ApiCall, skill: Skill) -> SkillDetail:
    skills = call.engine.skills
    files, tools, needs, agents = await asyncio.gather(
        skills.file_sizes(skill.name),
        skills.tools_of(skill.name),
        skills.needs(skill.name),
        skills.agents_of(skill.name),
    )
    known = {field.name: getattr(skill, field.name) for field in fields(Skill)}
    return SkillDetail(**known, files=files, tools=tools, needs=needs, agents=agents)
