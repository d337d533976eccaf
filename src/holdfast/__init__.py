"""Holdfast: an agent engine on PostgreSQL.

    async with holdfast.open_engine() as engine:
        ...

This module exports the public names. Each is imported at its first use, so that `import holdfast` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agents.agents import Agents as Agents
    from holdfast.agents.definitions import Incoming as Incoming
    from holdfast.agents.definitions import Limits as Limits
    from holdfast.agents.events import Event as Event
    from holdfast.app import App as App
    from holdfast.bus.handlers import current_command as current_command
    from holdfast.core.config import Config as Config
    from holdfast.core.config import load_config as load_config
    from holdfast.core.errors import AlreadyExists as AlreadyExists
    from holdfast.core.errors import BadSetting as BadSetting
    from holdfast.core.errors import Broken as Broken
    from holdfast.core.errors import Busy as Busy
    from holdfast.core.errors import CommandFailed as CommandFailed
    from holdfast.core.errors import Conflict as Conflict
    from holdfast.core.errors import DatabaseAway as DatabaseAway
    from holdfast.core.errors import Forbidden as Forbidden
    from holdfast.core.errors import HoldfastError as HoldfastError
    from holdfast.core.errors import InvalidInput as InvalidInput
    from holdfast.core.errors import LimitReached as LimitReached
    from holdfast.core.errors import ModelFailed as ModelFailed
    from holdfast.core.errors import NotFound as NotFound
    from holdfast.core.errors import Overloaded as Overloaded
    from holdfast.core.errors import TimedOut as TimedOut
    from holdfast.core.errors import TooLarge as TooLarge
    from holdfast.core.errors import Unauthenticated as Unauthenticated
    from holdfast.core.errors import Unavailable as Unavailable
    from holdfast.engine import Engine as Engine
    from holdfast.engine import open_engine as open_engine
    from holdfast.mcp.content import Audio as Audio
    from holdfast.mcp.content import Embedded as Embedded
    from holdfast.mcp.content import Image as Image
    from holdfast.mcp.content import Link as Link
    from holdfast.mcp.content import Message as Message
    from holdfast.mcp.content import ResourceContents as ResourceContents
    from holdfast.mcp.content import Text as Text
    from holdfast.mcp.inputs import Elicit as Elicit
    from holdfast.mcp.inputs import ListRoots as ListRoots
    from holdfast.mcp.inputs import Reply as Reply
    from holdfast.mcp.inputs import Sample as Sample
    from holdfast.memory import Draft as Draft
    from holdfast.memory import Hit as Hit
    from holdfast.memory import Hits as Hits
    from holdfast.memory import Memory as Memory
    from holdfast.memory import Owner as Owner
    from holdfast.memory import agent as agent
    from holdfast.memory import organization as organization
    from holdfast.memory import session as session
    from holdfast.memory import user as user
    from holdfast.skills.client import Client as Client
    from holdfast.skills.run import Run as Run
    from holdfast.skills.run import current_run as current_run

_ERRORS = (
    "AlreadyExists",
    "BadSetting",
    "Broken",
    "Busy",
    "CommandFailed",
    "Conflict",
    "DatabaseAway",
    "Forbidden",
    "HoldfastError",
    "InvalidInput",
    "LimitReached",
    "ModelFailed",
    "NotFound",
    "Overloaded",
    "TimedOut",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
)
_HOMES = {
    **dict.fromkeys(_ERRORS, "core.errors"),
    "Agents": "agents.agents",
    "App": "app",
    "Audio": "mcp.content",
    "Client": "skills.client",
    "Config": "core.config",
    "Draft": "memory",
    "Elicit": "mcp.inputs",
    "Embedded": "mcp.content",
    "Engine": "engine",
    "Event": "agents.events",
    "Hit": "memory",
    "Hits": "memory",
    "Image": "mcp.content",
    "Incoming": "agents.definitions",
    "Limits": "agents.definitions",
    "Link": "mcp.content",
    "ListRoots": "mcp.inputs",
    "Memory": "memory",
    "Message": "mcp.content",
    "Owner": "memory",
    "Reply": "mcp.inputs",
    "ResourceContents": "mcp.content",
    "Run": "skills.run",
    "Sample": "mcp.inputs",
    "Text": "mcp.content",
    "agent": "memory",
    "current_command": "bus.handlers",
    "current_run": "skills.run",
    "load_config": "core.config",
    "open_engine": "engine",
    "organization": "memory",
    "session": "memory",
    "user": "memory",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(f"holdfast.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, *(name for name in globals() if name.startswith("__"))])
