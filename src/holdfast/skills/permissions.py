"""Permissions: whether an agent, or a user directly, may call a tool. Pure.

There are three levels, each of which includes those before it: read, write, execute. A tool needs one of them, and a
skill grants one. The tool's permissions can cap what all agents, or some, may do with it:

    {"default": "read", "agents": {"support": "execute", "guest": "none"}}

A call is allowed if both grant and cap reach the level that the tool needs. Without a cap, the grant alone decides.

Users cannot call a tool directly, except administrators of the tenant, unless `"users": LEVEL` reaches the level that
the tool needs.
"""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.skills.tool import LEVELS, Access

NONE = "none"
CAPS = (NONE, *LEVELS)
PERMISSIONS_SCHEMA: Mapping[str, Any] = {
    "properties": {
        "default": {"enum": [*CAPS]},
        "agents": {"type": "object", "additionalProperties": {"enum": [*CAPS]}},
        "users": {"enum": [*CAPS]},
    },
    "additionalProperties": False,
}


def refusal_reason(access: Access, level: Access, permissions: Mapping[str, Any], agent: str) -> str:
    """Return why an agent may not call a tool that needs `access` by a skill that grants `level`, or an empty text."""
    if _rank(level) < _rank(access):
        return f"it requires the access {access}, and the skill grants only {level:.40}. Continue without it."
    cap = cap_of(permissions, agent)
    if cap is not None and _rank(cap) < _rank(access):
        limit = "has no access" if cap == NONE else f"has only {cap}"
        return f"it requires the access {access}, and {agent:.100} {limit}. Continue without it."
    return ""


def cap_of(permissions: Mapping[str, Any], agent: str) -> str | None:
    """Return the cap of an agent for a tool, or None if there is none. Unreadable permissions allow nothing."""
    if not permissions:
        return None
    agents = permissions.get("agents", {})
    if not isinstance(agents, Mapping):
        return NONE
    cap: object = cast(Mapping[str, object], agents).get(agent, permissions.get("default"))
    if cap is None:
        return None
    return cap if isinstance(cap, str) and cap in CAPS else NONE


def allows_users(access: Access, permissions: Mapping[str, Any]) -> bool:
    """Whether users may directly call a tool that needs `access`."""
    return _rank(str(permissions.get("users", NONE))) >= _rank(access)


def check_permissions(permissions: object) -> dict[str, Any]:
    """Return valid permissions of a tool. Raise InvalidInput with the reason for others."""
    if not isinstance(permissions, Mapping):
        raise _permissions_error("they are not an object")
    fields = cast(Mapping[str, Any], permissions)
    unknown = [str(key) for key in fields if key not in PERMISSIONS_SCHEMA["properties"]]
    if unknown:
        raise _permissions_error(f"the key `{unknown[0]:.60}` is unknown")
    agents: object = fields.get("agents", {})
    if not isinstance(agents, Mapping):
        raise _permissions_error("`agents` is not an object")
    caps = {f"agents.{name:.60}": cap for name, cap in cast(Mapping[str, object], agents).items()}
    caps |= {key: fields[key] for key in ("default", "users") if key in fields}
    for place, cap in caps.items():
        if cap not in CAPS:
            raise _permissions_error(f"the value {cap!r:.60} of `{place}` is unknown")
    return dict(fields)


def _rank(level: str) -> int:
    """Return the rank of a level; 0 for an unreadable one."""
    return CAPS.index(level) if level in CAPS else 0


def _permissions_error(why: str) -> InvalidInput:
    form = '{"default": "read", "agents": {"support": "execute"}, "users": "read"}'
    return InvalidInput(
        "the permissions of the tool are invalid",
        why=why,
        next=f"Write them like {form}, with the values {', '.join(CAPS)}.",
    )
