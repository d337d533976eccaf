"""Skills: instructions that an agent loads when it needs them, with their tools, dependencies and assignments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from holdfast.skills.tool import Access

BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


@dataclass(frozen=True, slots=True)
class SkillContent:
    """A file of a skill, such as a script, a reference or a picture."""

    content: Annotated[bytes, msgspec.Meta(extra_json_schema={"pattern": BASE64})] = field(repr=False)
    executable: bool = False


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill in a list: its size instead of its content."""

    path: str
    bytes: int
    executable: bool


@dataclass(frozen=True, slots=True)
class Skill:
    """A stored skill. `label` is the version that people see, `parent` the skill that it is part of.

    `front_matter` holds the fields of its SKILL.md except name and description.
    """

    id: UUID
    name: str
    description: str
    instructions: str
    label: str
    parent: str | None
    front_matter: Mapping[str, Any]
    origin: Literal["code", "db"]
    active: bool
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class DeclaredSkill:
    """A skill that an app declares.

    `tools` maps names to the access that the skill grants; None: the access that the tool needs. Skills in `requires`
    are loaded with it, those in `optional` on request.
    """

    name: str
    description: str = ""
    instructions: str = ""
    tools: Mapping[str, Access | None] = field(default_factory=dict[str, Access | None])
    requires: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    parent: str | None = None
    files: Mapping[str, SkillContent] = field(default_factory=dict[str, SkillContent])
    label: str = "1.0.0"
    front_matter: Mapping[str, Any] = field(default_factory=dict[str, Any])
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])  # by tool


@dataclass(frozen=True, slots=True)
class ToolLink:
    """A tool of a skill, and the access that the skill grants. `config` is its overlay (see skills/overlays.py)."""

    skill: str
    tool: str
    access: Access
    config: Mapping[str, Any]
    active: bool
    version: int
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class SkillDependency:
    """A dependency of a skill on another one, which is loaded with it if `required`, otherwise on request."""

    skill: str
    on: str
    required: bool
    active: bool
    version: int
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """A skill of an agent. In the prompt, a higher `priority` comes first, then a lower `sequence`."""

    agent: str
    skill: str
    config: Mapping[str, Any]
    priority: int
    sequence: int
    active: bool
    version: int
    updated_at: datetime
    updated_by: str
