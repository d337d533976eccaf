"""Functions of an app as tools, described by their signature and docstring."""

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, cast

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.core.threads import run_in_thread
from holdfast.skills.parameters import normalize
from holdfast.skills.run import Run, begin_run
from holdfast.skills.tool import LEVELS, LONGEST_TIMEOUT, MODES, Access, Mode, Tool
from holdfast.skills.validators import checker_of

_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|see also|attributes):\s*",
    re.IGNORECASE,
)
_OF_PARAMETERS = ("args", "arguments", "parameters", "params")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_REST = re.compile(r":(\w+)(?:\s+[^:]*?(\w+))?\s*:\s*(.*)")
_OF_PARAMETER = ("param", "parameter", "arg", "argument", "key", "keyword")


@dataclass(frozen=True, slots=True)
class Docstring:
    """The description of a function, and of its parameters by name."""

    text: str
    parameters: dict[str, str]


def parse_docstring(docstring: str) -> Docstring:
    """Parse a docstring without indentation. Other sections, such as Returns and Raises, are left out."""
    text: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, indent, name = "", None, None
    for line in docstring.splitlines():
        depth, bare = len(line) - len(line.lstrip()), line.strip()
        if depth == 0 and (found := _SECTION.fullmatch(bare)):
            section, indent, name = found[1].lower(), None, None
        elif depth == 0 and (found := _REST.match(bare)):
            section, name = "fields", found[2] if found[1] in _OF_PARAMETER else None
            if name is not None:
                parameters[name] = [found[3]]
        elif section in _OF_PARAMETERS and depth > 0:
            indent = depth if indent is None else indent
            if depth <= indent and (found := _GOOGLE.match(bare)):
                name = found[1]
                parameters[name] = [found[2]]
            elif name is not None:
                parameters[name].append(bare)
        elif section == "fields" and depth > 0 and name is not None:
            parameters[name].append(bare)
        elif bare and depth == 0 and section:
            section, name = "", None
            text.append(line)
        elif not section:
            text.append(line)
    return Docstring(
        "\n".join(text).strip(), {name: " ".join(filter(None, lines)) for name, lines in parameters.items()}
    )


MOST_ABANDONED = 8  # threads of one tool whose callers gave up: blocked functions must not exhaust the process

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # accepted by the APIs of all models
_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_DEFS = "#/$defs/{name}"
_UNCONVERTED = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of an app, and how it takes its arguments. `run_argument` is its parameter for the `Run`.

    `arguments` is the type of all arguments together. `takes_all` is the one parameter that gets all of them, if there
    is one.
    """

    call: Callable[..., Any]
    arguments: Any
    run_argument: str | None = None
    takes_all: str | None = None

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop; otherwise it runs in a thread."""
        inner = getattr(self.call, "__call__", None)  # noqa: B004 - for a callable object
        return inspect.iscoroutinefunction(self.call) or inspect.iscoroutinefunction(inner)

    @property
    def reference(self) -> str:
        """Where it is declared, as `module:name`."""
        inner = _inner(self.call)
        name = getattr(inner, "__qualname__", type(inner).__qualname__)
        return f"{getattr(inner, '__module__', '?')}:{name}"

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Convert JSON arguments to the function's types. Raise msgspec.ValidationError if they do not fit."""
        try:
            values = msgspec.convert(dict(arguments), self.arguments)
        except UnicodeEncodeError:  # msgspec cannot look up a name with a lone surrogate
            raise msgspec.ValidationError("A name has half a character") from None
        if self.takes_all is not None:
            return {self.takes_all: values}
        return {name: getattr(values, name) for name in arguments}  # others get the function's own defaults

    async def run(self, run: Run, arguments: Mapping[str, Any], *, name: str) -> Any:
        """Call it in a run: an async function on the event loop, others in a separate thread with this name."""
        try:
            values = self.convert(arguments)
        except msgspec.ValidationError as error:  # the caller checked them without the function
            raise InvalidInput(conversion_error(error)[1]) from None
        if self.run_argument is not None:
            values[self.run_argument] = run
        begin_run(run)
        if self.is_async:
            return await self.call(**values)
        result = await run_in_thread(lambda: self.call(**values), name=name, most_abandoned=MOST_ABANDONED)
        return await result if inspect.isawaitable(result) else result


def tool_of(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    idempotent: bool = False,
    timeout: float | None = None,
    approve: bool = False,
    access: Access = "execute",
    mode: Mode = "inline",
    schema: Mapping[str, Any] | None = None,
) -> Tool:
    """Return the tool of a function. Raise InvalidInput with the reason if a model could not call it.

    `schema` is the schema of the arguments if the signature does not describe them. The function then gets its
    arguments by name if its parameters are the schema's properties, and otherwise all of them in its one parameter.
    """
    inner = _inner(function)
    tool_name = getattr(inner, "__name__", type(inner).__name__) if name is None else name
    signature = _signature(tool_name, function)
    _check(tool_name, signature, timeout)
    if access not in LEVELS:
        raise _tool_error(tool_name, f"its access {access!r:.100} is unknown", f"Use one of {', '.join(LEVELS)}.")
    if mode not in MODES:
        raise _tool_error(tool_name, f"its mode {mode!r:.100} is unknown", f"Use one of {', '.join(MODES)}.")
    hints = _hints(tool_name, inner)
    run_argument = next((each for each in signature.parameters if _is_run(hints.get(each))), None)
    documentation = parse_docstring(inspect.getdoc(inner) or "")
    argument_parameters = [each for name, each in signature.parameters.items() if name != run_argument]
    takes_all: str | None = None
    if schema is not None:
        schema = _check_schema(tool_name, schema)
        hints = {**{each.name: Any for each in argument_parameters}, **hints}
        takes_all = _parameter_of_all(tool_name, [each.name for each in argument_parameters], schema)
    try:
        if takes_all is not None:
            arguments = _type_of_all(tool_name, hints[takes_all])
        else:
            fields = [
                _field(tool_name, each, hints, documentation.parameters.get(each.name)) for each in argument_parameters
            ]
            arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        parameters = _schema(arguments) if schema is None else schema
    except (TypeError, ValueError) as error:
        raise _tool_error(
            tool_name,
            f"its types have no JSON Schema ({str(error).partition(chr(10))[0]:.200})",
            "Use str, int, float, bool, list, dict, Literal, enums, dataclasses, TypedDict, datetime or UUID.",
        ) from None
    declared = Function(function, arguments, run_argument, takes_all)
    return Tool(
        tool_name,
        documentation.text,
        parameters,
        access=access,
        mode=mode,
        idempotent=idempotent,
        approve=approve,
        timeout=timeout,
        function=declared,
        reference=declared.reference,
    )


def _check_schema(tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    try:
        checked = normalize(schema)
        checker_of(checked)
    except InvalidInput as error:
        raise _tool_error(tool, f"its JSON Schema is invalid ({error.why})", "Correct the schema.") from None
    return checked


def _parameter_of_all(tool: str, names: Sequence[str], schema: Mapping[str, Any]) -> str | None:
    """Return the parameter that gets all arguments, or None if each argument has its own."""
    properties = cast(Mapping[str, Any], schema.get("properties", {}))
    without_property = [name for name in names if name not in properties]
    if without_property and len(names) == 1:
        return names[0]
    if without_property:
        why = f"the schema has no property {without_property[0]}, which the function takes"
        raise _tool_error(tool, why, "Name its parameters like the properties, or let one parameter take all of them.")
    property_without = next((name for name in properties if name not in names), None)
    if property_without is not None:
        why = f"the schema has the property {property_without:.60}, which the function does not take"
        raise _tool_error(tool, why, "Add a parameter for each property, or use one parameter that takes all of them.")
    return None


def _type_of_all(tool: str, kind: Any) -> Any:
    """Return the type of all arguments together, if it accepts an object."""
    try:
        msgspec.convert({}, kind)
    except msgspec.ValidationError as error:
        if str(error).endswith("got `object`"):
            why = f"its only parameter does not take an object ({error!s:.100})"
            raise _tool_error(tool, why, "Annotate it as a dict, a dataclass or a TypedDict.") from None
    return kind


def conversion_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the argument that was not converted, and the error in words for a model."""
    found = _UNCONVERTED.fullmatch(str(error))
    what, where = (found["what"], (found["path"] or "").lstrip(".")) if found else (str(error), "")
    subject = f"the argument `{where:.60}` is invalid" if where else "the arguments are invalid"
    return where, f"{subject}, {what[:1].lower()}{what[1:140]}"


def _inner(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return function  # pyright: ignore[reportUnknownVariableType]


def _signature(name: str, function: object) -> inspect.Signature:
    if not callable(function):
        raise _tool_error(name, "it is not a function", "Use @app.tool on a function.")
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # not written in Python
        raise _tool_error(
            name, "its signature is not available", "Wrap it in a Python function with named parameters."
        ) from None


def _check(name: str, signature: inspect.Signature, timeout: float | None) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _tool_error(
            name, "models do not accept this name", "Pass name= with 1 to 64 letters, digits, underscores and hyphens."
        )
    for each in signature.parameters.values():
        if each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL):
            raise _tool_error(name, f"{each.name} cannot be passed by name", "Use named parameters only.")
        if each.kind is each.VAR_KEYWORD:
            raise _tool_error(
                name, f"**{each.name} does not say which arguments it takes", "Name each argument, or take a dict."
            )
        if not _PARAMETER.fullmatch(each.name):
            raise _tool_error(
                name, f"models do not accept the argument name {each.name!r:.100}", "Use up to 64 ASCII letters."
            )
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout <= LONGEST_TIMEOUT):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _tool_error(name, f"its timeout {timeout!r:.100} is invalid", f"Use seconds, up to {LONGEST_TIMEOUT:g}.")


def _hints(name: str, function: Any) -> dict[str, Any]:
    of = function if inspect.isroutine(function) else function.__call__
    try:
        return typing.get_type_hints(of, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise _tool_error(
            name, f"its annotations cannot be read ({error})", "Define its types at module level."
        ) from None


def _field(
    tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], description: str | None
) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return a parameter as a field of the arguments. A default that is not a plain value stays in the function."""
    name, default = parameter.name, parameter.default
    if name not in hints:
        raise _tool_error(tool, f"the parameter {name} has no type", f"Annotate it, for example {name}: str.")
    kind = _with_format(hints[name])
    if default is None:
        kind = kind | None
    if description and not (typing.get_origin(kind) is Annotated and _describes(kind)):
        kind = Annotated[kind, msgspec.Meta(description=description)]
    if default is parameter.empty:
        return name, kind
    if default is None or isinstance(default, str | int | float | Enum):
        return name, kind, default
    return name, kind | msgspec.UnsetType, msgspec.UNSET


def _is_run(kind: object) -> bool:
    return kind is Run or Run in typing.get_args(kind)


def _with_format(kind: Any) -> Any:
    """Return a type with the format that a model has to use, if the schema would not show it."""
    if kind is datetime:
        return Annotated[datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return functools.reduce(lambda one, other: one | other, map(_with_format, typing.get_args(kind)))
    return kind


def _describes(kind: Any) -> bool:
    return any(isinstance(each, msgspec.Meta) and each.description for each in kind.__metadata__)


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of an object, with referenced schemas in `$defs`."""
    [top], defs = msgspec.json.schema_components([arguments], ref_template=_DEFS)
    schema = defs.pop(top["$ref"].rpartition("/")[2])
    schema.pop("title")
    for each in (schema, *defs.values()):
        _type_enums(each)
    return {**schema, "$defs": defs} if defs else schema


def _type_enums(schema: Any) -> None:
    """Add a type to enums of texts, because some models' APIs need it."""
    if isinstance(schema, list):
        for each in cast(list[Any], schema):
            _type_enums(each)
    if isinstance(schema, dict):
        found = cast(dict[str, Any], schema)
        values = found.get("enum")
        if isinstance(values, list) and all(isinstance(each, str) for each in cast(list[Any], values)):
            found.setdefault("type", "string")
        for name in ("properties", "$defs"):
            for each in found.get(name, {}).values():
                _type_enums(each)
        for name in ("items", "prefixItems", "anyOf", "additionalProperties"):
            _type_enums(found.get(name))


def _tool_error(name: object, why: str, next: str) -> InvalidInput:
    return InvalidInput(f"the tool {name!r:.200} cannot be declared", why=why, next=next)
