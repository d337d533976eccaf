"""Checks tools and skills to be stored, and converts them to the columns of the registry. Pure."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.core.text import store
from holdfast.skills.parameters import ParameterRow, normalize, parameters_of
from holdfast.skills.registry_terms import terms_of
from holdfast.skills.service import method_error
from holdfast.skills.tool import KINDS, LEVELS, LONGEST_TIMEOUT, MODES, RESERVED, SCRIPTS, Tool
from holdfast.skills.validators import checker_of

if TYPE_CHECKING:
    from holdfast.skills.sources.source import ImportedTool

MAX_DESCRIPTION = 20_000  # characters, of a tool's description
MAX_SKILL_DESCRIPTION = 1024
MAX_INSTRUCTIONS = 200_000
MAX_SCRIPT = 1_000_000
MAX_NAME = 126
MAX_LABEL = 20
MAX_BY = 126

# One line, without surrounding whitespace.
SKILL_NAME = r"[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,124}[^\s\x00-\x1f\x7f-\x9f])?"
TOOL_NAME = r"[a-zA-Z0-9_-]{1,64}"  # accepted by the APIs of all models
_TOOL_NAME = re.compile(TOOL_NAME)
REFERENCE = r"[^\s:]+:[^\s:]+"
_REFERENCE = re.compile(REFERENCE)
REQUESTED = ("rest", "graphql", "jsonrpc")  # kinds of tools that send HTTP requests
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY")
_PARAMETER = tuple(field.name for field in fields(ParameterRow))


def check_text(what: str, field: str, text: object, longest: int, *, empty: bool = True) -> str:
    """Return a text that fits a column. `what` and `field` name it in the error."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} cannot be stored", why=f"its {field} is not a string", next="Pass a string.")
    size = len(store(text))
    if size > longest:
        raise InvalidInput(
            f"{what} cannot be stored",
            why=f"its {field} has {size} characters",
            next=f"Shorten it to at most {longest}.",
        )
    if not empty and not text.strip():
        raise InvalidInput(f"{what} cannot be stored", why=f"its {field} is empty", next=f"Pass a {field}.")
    return text


def check_skill_name(name: object) -> str:
    """Return a valid name of a skill: one line, without surrounding whitespace."""
    what = f"the skill {name!r:.200}"
    text = check_text(what, "name", name, MAX_NAME, empty=False)
    if text != text.strip() or any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in text):
        raise InvalidInput(
            f"{what} cannot be stored",
            why="its name has control characters or surrounding whitespace",
            next="Use one line of plain text.",
        )
    return text


def check_object(what: str, field: str, value: object) -> dict[str, Any]:
    """Return a JSON object; refuse other values."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} cannot be stored", why=f"its {field} is not an object", next="Pass a JSON object.")
    return dict(cast(Mapping[str, Any], value))


def check_tool(tool: Tool) -> None:
    """Refuse a tool that could not be called, with the reason."""
    what = f"the tool {tool.name!r:.200}"
    wrong = _find_error(tool)
    if wrong is not None:
        raise InvalidInput(f"{what} cannot be stored", why=wrong[0], next=wrong[1])
    check_text(what, "description", tool.description, MAX_DESCRIPTION)
    try:
        checker_of(normalize(tool.parameters))
    except InvalidInput as error:
        why = f"the JSON Schema of its arguments is invalid ({error.why})"
        raise InvalidInput(f"{what} cannot be stored", why=why, next="Correct the schema.") from None


def tool_item(tool: Tool, **columns: Any) -> dict[str, Any]:
    """Return the columns and parameters of a tool; `columns` adds those that a `Tool` does not have."""
    rows, rest = parameters_of(tool.parameters)
    request = tool.request
    return {
        "name": tool.name,
        "description": tool.description,
        "implementation_type": tool.kind,
        "implementation_class": (tool.reference or None) if tool.kind != "mcp_server" else None,
        "mcp_server_name": tool.reference if tool.kind == "mcp_server" else None,
        "api_endpoint": request.url[:1024] if request else None,
        "api_method": request.method[:10] if request else None,
        "request": msgspec.to_builtins(request) if request else None,
        "schema_rest": rest,
        "access": tool.access,
        "mode": tool.mode,
        "idempotent": tool.idempotent,
        "approve": tool.approve,
        "timeout": tool.timeout,
        "service": tool.service,
        "parameters": [{name: getattr(row, name) for name in _PARAMETER} for row in rows],
        "terms": terms_of(tool.name, tool.description),
        **columns,
    }


def imported_item(imported: "ImportedTool") -> dict[str, Any]:
    """Return the columns of a source's tool, without its name, its back end (of the source) and its permissions."""
    item = tool_item(imported.tool, display_name=imported.display_name, openapi_schema=imported.raw)
    del item["name"]
    return item


def _find_error(tool: Tool) -> tuple[str, str] | None:
    """Return what is wrong with a tool and how to fix it, or None."""
    if not isinstance(tool.name, str) or not _TOOL_NAME.fullmatch(tool.name):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "models do not accept this name", "Use 1 to 64 letters, digits, underscores and hyphens."
    if tool.name in RESERVED:
        return "the name is reserved for a tool of the engine", "Use another name."
    for field, value, known in (
        ("kind", tool.kind, KINDS), ("access", tool.access, LEVELS), ("mode", tool.mode, (None, *MODES)),
    ):  # fmt: skip
        if value not in known:
            return f"its {field} {value!r:.100} is unknown", f"Use one of {', '.join(map(str, filter(None, known)))}."
    if not isinstance(tool.parameters, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return "the JSON Schema of its arguments is not an object", "Pass a JSON Schema, such as {}."
    if tool.service is not None and (wrong := method_error(tool.service)) is not None:
        return wrong
    timeout = tool.timeout
    if timeout is not None and not (_is_number(timeout) and 0 < timeout <= LONGEST_TIMEOUT):
        return f"its timeout {timeout!r:.100} is invalid", f"Use seconds, up to {LONGEST_TIMEOUT:g}."
    for field in ("idempotent", "approve"):
        if not isinstance(getattr(tool, field), bool):
            return f"`{field}` is not a boolean", "Use true or false."
    if tool.kind == "mcp_server":
        return _mcp_error(tool)
    return _request_error(tool) if tool.kind in REQUESTED else _reference_error(tool)


def _mcp_error(tool: Tool) -> tuple[str, str] | None:
    if tool.request is None or tool.request.mcp is None:
        why = "the tools of an MCP server are not registered one by one"
        return why, "Add the server with `holdfast sources add NAME --mcp URL`."
    return None


def _request_error(tool: Tool) -> tuple[str, str] | None:
    request = tool.request
    if request is None or not request.url or not request.method:
        return f"a {tool.kind} tool requires a method and an endpoint", "Pass both."
    if request.method not in METHODS:
        return f"the HTTP method {request.method!r:.100} is unknown", f"Use one of {', '.join(METHODS)}."
    if len(store(request.url)) > 1024:
        return "its endpoint has more than 1024 characters", "Shorten it, and make its variable parts arguments."
    if tool.kind == "graphql" and (request.graphql is None or not request.graphql.document):
        next = 'Pass it as `graphql` in its request: {"document": "query …"}. Or import the service as a source.'
        return "a graphql tool requires an operation", next
    if tool.kind == "jsonrpc" and (request.rpc is None or not request.rpc.name):
        return "a jsonrpc tool requires a method of the service", "Pass it as `rpc` in its request."
    if tool.backend is None and not _is_web_address(request.url):
        return f"its endpoint {request.url!r:.200} is not an HTTP URL", "Begin it with https:// or http://."
    return None


def _reference_error(tool: Tool) -> tuple[str, str] | None:
    needs = {"function": "reference", "java": "reference"}.get(tool.kind, "script")
    if not tool.reference:
        return f"a {tool.kind} tool requires a {needs}", f"Pass its {needs}."
    if tool.kind == "function" and not _REFERENCE.fullmatch(tool.reference):
        return f"its reference {tool.reference!r:.100} is not the name of a function", "Write it as module:name."
    longest = MAX_SCRIPT if tool.kind in SCRIPTS else 500
    if len(store(tool.reference)) > longest:
        return f"its {needs} has more than {longest} characters", "Shorten it."
    return None


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"[\s\x00-\x1f\x7f]", url)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
