"""Overlays: how skills and agents preset the calls of their tools. Pure.

A `config` can have fixed `arguments`, which the model does not see; `defaults` for arguments that the model omits; a
`timeout` in seconds; and `approve`, which requires a person's approval of each call. The config of an agent's skill
overrides the config of the skill's tool. An approval that a tool or a config requires cannot be overridden.
"""

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, cast

from holdfast.core.errors import InvalidInput
from holdfast.skills.tool import LONGEST_TIMEOUT, Tool
from holdfast.skills.validators import below, checker_of

Config = Mapping[str, Any]

CONFIG_SCHEMA: Mapping[str, Any] = {
    "properties": {
        "arguments": {"type": "object"},
        "defaults": {"type": "object"},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_TIMEOUT},
        "approve": {"type": "boolean"},
    },
    "additionalProperties": False,
}
KEYS = tuple(CONFIG_SCHEMA["properties"])

# Keywords that can apply to several arguments at once. `required` is rebuilt separately.
_TOGETHER = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overlay:
    """The arguments that a call gets in addition to the model's."""

    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def apply(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the call. Fixed arguments override the model's."""
        if not self.fixed and not self.defaults:
            return {**arguments}
        missing = {name: deepcopy(value) for name, value in self.defaults.items() if name not in arguments}
        return {**arguments, **missing, **deepcopy(dict(self.fixed))}


def apply_configs(tool: Tool, *configs: Config) -> tuple[Tool, Overlay]:
    """Return the tool as a model sees it, and the overlay of its calls. Later configs override earlier ones.

    Arguments that the tool does not have are ignored: an agent's config is for all tools of a skill. Defaults that the
    tool does not accept are ignored, too. A fixed argument that it does not accept raises InvalidInput, because the
    model must not choose its value instead.
    """
    names = _names(tool)
    fixed = {name: value for config in configs for name, value in _entries(config, "arguments") if name in names}
    defaults = {
        name: value
        for config in configs
        for name, value in _entries(config, "defaults")
        if name in names and name not in fixed
    }
    if fixed or defaults:
        check_values(tool, {"arguments": fixed})
        parts = checker_of(tool.parameters).parts()
        defaults = {name: value for name, value in defaults.items() if parts.fits(below("", "properties", name), value)}
    timeouts = [config["timeout"] for config in configs if _is_timeout(config.get("timeout"))]
    approve = tool.approve or any(config.get("approve") is True for config in configs)
    if not fixed and not defaults and not timeouts and approve == tool.approve:
        return tool, Overlay()
    parameters = _visible_schema(tool.parameters, fixed, defaults) if fixed or defaults else tool.parameters
    timeout = float(timeouts[-1]) if timeouts else tool.timeout
    return replace(tool, parameters=parameters, timeout=timeout, approve=approve), Overlay(fixed, defaults)


def check_config(config: object) -> dict[str, Any]:
    """Return a valid config. Raise InvalidInput with the reason for others."""
    if not isinstance(config, Mapping):
        raise _config_error("it is not an object")
    settings = cast(Config, config)
    for key in settings:
        if key not in KEYS:
            raise _config_error(f"the key `{key!s:.60}` is unknown")
    for key in ("arguments", "defaults"):
        if not isinstance(settings.get(key, {}), Mapping):
            raise _config_error(f"`{key}` is not an object")
    if "timeout" in settings and not _is_timeout(settings["timeout"]):
        raise _config_error(f"`timeout` cannot be {settings['timeout']!r:.60}; use seconds, up to {LONGEST_TIMEOUT:g}")
    if not isinstance(settings.get("approve", False), bool):
        raise _config_error(f"`approve` cannot be {settings['approve']!r:.60}; use true or false")
    return dict(settings)


def check_values(tool: Tool, config: Config, *, all: bool = False) -> None:
    """Refuse values that the tool does not accept; with `all`, also arguments that it does not have."""
    names = _names(tool)
    parts = checker_of(tool.parameters).parts()
    for key in ("arguments", "defaults"):
        for name, value in _entries(config, key):
            if name not in names and all:
                available = ", ".join(names) or "none"
                raise _config_error(
                    f"the tool {tool.name} has no argument `{name:.60}`; its arguments: {available:.300}"
                )
            if name in names and not parts.fits(below("", "properties", name), value):
                raise _config_error(f"`{key}.{name:.60}` does not match the schema of the tool {tool.name}")


def _visible_schema(schema: Mapping[str, Any], fixed: Collection[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without the fixed arguments and with the defaults."""
    properties = {
        name: _with_default(each, defaults[name]) if name in defaults else each
        for name, each in schema["properties"].items()
        if name not in fixed
    }
    visible = {**schema, "properties": properties}
    required = [name for name in schema.get("required", ()) if name not in fixed and name not in defaults]
    visible.pop("required", None)
    # The model could never satisfy a keyword that mentions an argument which it does not see.
    hidden = [key for key in _TOGETHER if key in visible and _mentions(visible[key], fixed)]
    for key in hidden:
        del visible[key]
    if hidden:
        visible.setdefault("additionalProperties", True)
    return {**visible, "required": required} if required else visible


def _with_default(schema: Any, default: Any) -> dict[str, Any]:
    return (
        {**cast(Mapping[str, Any], schema), "default": default} if isinstance(schema, Mapping) else {"default": default}
    )


def _mentions(value: Any, names: Collection[str]) -> bool:
    if isinstance(value, Mapping):
        settings = cast(Mapping[str, Any], value)
        return any(key in names or _mentions(each, names) for key, each in settings.items())
    if isinstance(value, list):
        return any(_mentions(each, names) for each in cast(list[Any], value))
    return isinstance(value, str) and value in names


def _names(tool: Tool) -> tuple[str, ...]:
    return tuple(tool.parameters.get("properties", {}))


def _entries(config: Config, key: str) -> list[tuple[str, Any]]:
    settings = config.get(key)
    return list(cast(Mapping[str, Any], settings).items()) if isinstance(settings, Mapping) else []


def _is_timeout(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_TIMEOUT


def _config_error(why: str) -> InvalidInput:
    return InvalidInput(
        "the config of the skill is invalid",
        why=why,
        next=f"Use only {', '.join(KEYS)}; see the documentation of skills.",
    )
