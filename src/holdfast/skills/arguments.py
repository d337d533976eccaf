"""Checks the arguments of a tool call, written by a model or a person, before the tool runs."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from holdfast.core.errors import HoldfastError, InvalidInput, TooLarge
from holdfast.core.text import dumps, loads, parse, render
from holdfast.skills.argument_errors import find_errors, shorten
from holdfast.skills.function_tools import conversion_error
from holdfast.skills.overlays import Overlay
from holdfast.skills.parameters import storable
from holdfast.skills.tool import Tool
from holdfast.skills.validators import Checker, checker_of

MAX_ARGUMENTS_BYTES = 1024 * 1024
MAX_ECHO = 200  # characters of the model's text in a refusal
MAX_NAMES = 500  # characters of the list of argument names
MAX_LISTED = 50  # tools named in a refusal


@dataclass(frozen=True, slots=True)
class ArgumentRefusal:
    """Why a tool is not called, as a text for the model."""

    text: str


def unknown_tool(name: str, known: Collection[str], *, skill: str | None = None) -> ArgumentRefusal:
    """Return the refusal for an unknown tool; `skill` is a skill that would provide it."""
    if skill is not None:
        return ArgumentRefusal(
            f"the tool {name[:MAX_ECHO]} is not available yet. Load the skill {skill} with use_skill first."
        )
    names = sorted(known)
    available = f"The tools are {', '.join(names)}." if names else "There are no tools."
    if len(names) > MAX_LISTED:
        near = difflib.get_close_matches(name[:MAX_ECHO], names) or names[:MAX_LISTED]
        available = f"Some of the {len(names)} tools are {', '.join(near)}."
    return ArgumentRefusal(f"there is no tool {name[:MAX_ECHO]!r}. {available}")


def parse_arguments(tool: Tool, raw: str, overlay: Overlay | None = None) -> dict[str, Any] | ArgumentRefusal:
    """Parse and check a model's arguments, and apply the overlay. An empty text is an empty object."""
    try:
        given: object = parse(raw.encode(errors="surrogatepass"), limit=MAX_ARGUMENTS_BYTES) if raw.strip() else {}
        dumps({"tool_calls": [{"arguments": given}]})  # checks that they can be stored
    except HoldfastError as error:
        return _refuse_unreadable(tool, error)
    return check_parsed(tool, given, overlay)


def check(tool: Tool, arguments: object, overlay: Overlay | None = None) -> dict[str, Any] | ArgumentRefusal:
    """Check arguments by the tool's schema, with defaults for missing ones, and apply the overlay.

    Defaults of an imported schema are not filled in: its back end assumes them.
    """
    try:
        text = dumps({"tool_calls": [{"arguments": arguments}]})  # as they are stored
        _check_size(len(text.encode()))
        given = loads(text)["tool_calls"][0]["arguments"]
    except HoldfastError as error:
        return _refuse_unreadable(tool, error)
    return check_parsed(tool, given, overlay)


def check_parsed(tool: Tool, given: object, overlay: Overlay | None = None) -> dict[str, Any] | ArgumentRefusal:
    """Do the same as `check`, for arguments that were just parsed from JSON and are not used elsewhere.

    The caller limits their size.
    """
    if not isinstance(given, dict):
        return _refusal(tool, f"its arguments are {_kind(given)}, not an object", "Write one JSON object.")
    try:
        # Arguments of a function are converted to its types, here or where it runs. That accepts more forms of dates.
        checker = checker_of(tool.parameters, formats=tool.kind != "function")
    except InvalidInput as error:
        return _refusal(tool, f"{error.what}, {error.why}", "Tell the user that the tool needs to be fixed.")
    # Fixed arguments are not in the schema that the model saw, so they are left out of the check.
    fixed = overlay.fixed if overlay is not None else ()
    from_model = {name: value for name, value in cast(dict[str, Any], given).items() if name not in fixed}
    # A default in a back end's document is its value for a missing argument. Sending it can mean something else.
    arguments = from_model if tool.is_imported else checker.defaults.fill(from_model)
    try:
        invalid = None if checker.validator.is_valid(arguments) else arguments
    except UnicodeEncodeError:  # a lone surrogate is checked as U+FFFD
        whole = storable(arguments)
        invalid = None if checker.validator.is_valid(whole) else whole
    if invalid is not None:
        return _refuse_errors(tool, checker, invalid)
    if overlay is not None:
        arguments = overlay.apply(arguments)
    try:
        if tool.function is not None:
            tool.function.convert(arguments)
    except msgspec.ValidationError as error:
        return _refuse_unconverted(tool, error)
    return arguments


def with_defaults(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return checked arguments with the defaults that a back end assumes. Those of other tools have theirs already."""
    if not tool.is_imported:
        return arguments
    return checker_of(tool.parameters).defaults.fill(cast(dict[str, Any], arguments))


def refuse_large(tool: Tool, given: object) -> ArgumentRefusal | None:
    """Refuse arguments that were parsed from JSON if they are too large."""
    try:
        _check_size(len(render(given)))
    except TooLarge as error:
        return _refuse_unreadable(tool, error)
    return None


def _check_size(size: int) -> None:
    if size > MAX_ARGUMENTS_BYTES:
        raise TooLarge("they are too large", why=f"they have {size} bytes; the limit is {MAX_ARGUMENTS_BYTES}")


def _refuse_errors(tool: Tool, checker: Checker, arguments: dict[str, Any]) -> ArgumentRefusal:
    found, more = find_errors(checker, arguments)
    takes = {shorten(each.takes): each.where for each in reversed(found) if each.takes is not None and each.path}
    hints = [f"`{where}` takes {schema}." for schema, where in reversed(takes.items())]
    if any(each.kind == "unknown" and len(each.path) == 1 for each in found):
        names = ", ".join(tool.parameters.get("properties", {})) or "none"
        hints.append(f"Its arguments: {names[:MAX_NAMES]}{'…' if len(names) > MAX_NAMES else ''}.")
    why = " ".join("; ".join([*map(str, found), *(["and there are more errors"] if more else [])]).split())
    return ArgumentRefusal(" ".join([f"{tool.name} was not called: {why}.", *hints]))


def _refuse_unreadable(tool: Tool, error: HoldfastError) -> ArgumentRefusal:
    return _refusal(tool, f"its arguments cannot be parsed, {error.what}: {error.why}", "Write one JSON object.")


def _refuse_unconverted(tool: Tool, error: msgspec.ValidationError) -> ArgumentRefusal:
    where, why = conversion_error(error)
    name = re.split(r"[.\[]", where, maxsplit=1)[0]
    schema = tool.parameters.get("properties", {}).get(name)
    takes = "" if schema is None else f"`{name:.60}` takes {shorten(schema)}."
    return _refusal(tool, why, takes)


def _refusal(tool: Tool, why: str, next: str) -> ArgumentRefusal:
    why = " ".join(why.split())
    return ArgumentRefusal(f"{tool.name} was not called: {why[: 2 * MAX_ECHO]}. {next}".rstrip())


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a number"
