"""`tools/list` and `tools/call`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from holdfast.access.principals import MissingScope
from holdfast.core.errors import Forbidden, RateLimited, TooLarge
from holdfast.core.text import render
from holdfast.execution.outcomes import Outcome, weight_of
from holdfast.gateway.mcp.replies import missing_capability
from holdfast.gateway.mcp.requests import Handler, McpRequest, Result
from holdfast.gateway.views import CallerView, Listed
from holdfast.mcp.content import builtin
from holdfast.mcp.protocol import INVALID_PARAMS, McpError

ERROR_META = "io.holdfast/error"  # in the `_meta` of a result: why a call was refused
STRUCTURED = (dict, list, int, float)  # types of results that are sent as structured content, too


@dataclass(frozen=True, slots=True)
class RenderedTools:
    """The tools of a view, as JSON."""

    json: msgspec.Raw


async def list_tools(request: McpRequest) -> Result:
    """List the tools that the caller sees, on one page. If there are many, `search_tools` finds those not listed."""
    if request.params.get("cursor") is not None:
        raise McpError(INVALID_PARAMS, "there is no such cursor: the list has one page")
    view = await request.gateway.tools(request.caller)
    return {"tools": tools_json(view, request.gateway.engine.config.gateway.listed_tools)}


async def call_tool(request: McpRequest) -> Result:
    """Call a tool; a failure of the tool is a result, for a model to read."""
    name, arguments = request.text("name"), request.object("arguments")
    try:
        outcome = await request.gateway.call(request.caller, name, arguments, client=request.client)
    except MissingScope:  # the client can get it
        raise
    except Forbidden as error:  # the caller sees the tool, so that this is a result, too
        _raise_missing_capability(request, error)
        return _failure(str(error))
    except RateLimited as error:  # the model reads it and can wait; programs read the `_meta`
        about = {"code": error.code, "limit": error.details["limit"], "retryAfter": error.retry_after}
        return {**_failure(str(error)), "_meta": {ERROR_META: about}}
    _raise_missing_capability(request, outcome.cause)
    most = request.gateway.engine.config.gateway.max_result_bytes
    return result_of(outcome, modern=request.is_modern, most=most)


def _raise_missing_capability(request: McpRequest, error: BaseException | None) -> None:
    """Raise the missing capability that caused a failure. A modern client gets it as an error of the protocol."""
    missing = missing_capability(error)
    if request.is_modern and missing is not None:
        raise missing


def tools_json(view: CallerView, most: int) -> msgspec.Raw:
    """Return the tools of a view as JSON. They are rendered once."""

    def render_tools() -> RenderedTools:
        return RenderedTools(msgspec.Raw(render([definition(each) for each in view.listed_tools(most)])))

    return view.cache.get(RenderedTools, render_tools).json


def definition(listed: Listed) -> dict[str, Any]:
    """Return a tool in the format of MCP."""
    tool = listed.offer.shown
    schema = {"type": "object", **tool.parameters}
    found: dict[str, Any] = {"name": listed.name, "description": tool.description, "inputSchema": schema}
    if listed.title:
        found["title"] = listed.title
    found["annotations"] = {"readOnlyHint": tool.access == "read", "idempotentHint": tool.idempotent}
    if tool.request is not None and tool.request.mcp is not None:  # as its own server defines it
        found |= tool.request.mcp.definition
    return found


def result_of(outcome: Outcome, *, modern: bool, most: int) -> Result:
    """Return the outcome of a call in the format of MCP.

    Structured content is any value for modern clients, and an object for legacy ones. A shortened text says so itself.
    Blocks cannot be shortened: more than `most` characters of them are an error.
    """
    if outcome.mcp is not None:
        return _passed_on(outcome.mcp, modern=modern, most=most)
    if outcome.status != "done":
        return _failure(outcome.text if outcome.outward is None else outcome.outward)
    if outcome.content is not None:
        blocks = [builtin(block) for block in outcome.content]
        if weight_of(blocks, most) > most:
            return _too_large(most)
        return {"content": blocks, "isError": False}
    result: Result = {"content": [{"type": "text", "text": outcome.text}], "isError": False}
    given: object = outcome.result
    if isinstance(given, STRUCTURED if modern else dict) and outcome.whole is None and not outcome.shortened:
        result["structuredContent"] = cast(Any, given)
    return result


def _passed_on(result: Mapping[str, Any], *, modern: bool, most: int) -> Result:
    """Return the result of another server. Legacy clients take only objects as structured content."""
    if weight_of(result, most) > most:
        return _too_large(most)
    keep = modern or isinstance(result.get("structuredContent"), dict)
    return {name: value for name, value in result.items() if keep or name != "structuredContent"}


def _too_large(most: int) -> Result:
    limit = f"at most {most} characters are given"
    return _failure(str(TooLarge("the result is too large", why=limit, next="Ask for less.")))


def _failure(text: str) -> Result:
    return {"content": [{"type": "text", "text": text}], "isError": True}


METHODS: dict[str, Handler] = {"tools/list": list_tools, "tools/call": call_tool}
