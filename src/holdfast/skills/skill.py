"""Skills: instructions that an agent reads when it needs them, with the tools that they speak of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from holdfast.skills.tool import Access

BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


@dataclass(frozen=True, slots=True)
class File:
    """What lies beside a skill's instructions: a script, a reference, a picture."""

    content: Annotated[bytes, msgspec.Meta(extra_json_schema={"pattern": BASE64})] = field(repr=False)
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it is stored; `label` is the version that people see, `parent` the skill that it is a part of.

    `front_matter`: what its SKILL.md says beside name and description.
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
class Declared:
    """A skill that a program declares.

    `tools` are names, each with the access that the skill grants, None: what the tool takes. `requires` are loaded with
    it, `optional` when they are asked for.
    """

    name: str
    description: str = ""
    instructions: str = ""
    tools: Mapping[str, Access | None] = field(default_factory=dict[str, Access | None])
    requires: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    parent: str | None = None
    files: Mapping[str, File] = field(default_factory=dict[str, File])
    label: str = "1.0.0"
    front_matter: Mapping[str, Any] = field(default_factory=dict[str, Any])
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])  # by tool


@dataclass(frozen=True, slots=True)
class Link:
    """A tool that a skill works with, and how far; `config` overlays its calls (see skills/overlays.py)."""

    skill: str
    tool: str
    access: Access
    config: Mapping[str, Any]
    active: bool
    version: int
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class Need:
    """What a skill needs: another one, `required` to be loaded with it, or only of use when it is asked for."""

    skill: str
    on: str
    required: bool
    active: bool
    version: int
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """A skill that an agent has. The higher its `priority`, the earlier it stands in the prompt; then by `sequence`."""

    agent: str
    skill: str
    config: Mapping[str, Any]
    priority: int
    sequence: int
    active: bool
    version: int
    updated_at: datetime
    updated_by: str
