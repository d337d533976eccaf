"""`completion/complete`: suggests values for an argument of a prompt, or a parameter of a resource template."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.gateway.mcp.prompts import source_with_prompt
from holdfast.gateway.mcp.requests import Handler, McpRequest, Result
from holdfast.gateway.source_offerings import SourceOffers
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from holdfast.skills.completers import Completer

MOST = 100  # values in one answer, the limit of the protocol


async def complete(request: McpRequest) -> Result:
    """Return the values that fit what was typed so far."""
    argument = request.object("argument")
    name, typed = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(typed, str):
        raise McpError(INVALID_PARAMS, "`argument` has to have a `name` and a `value`, both texts")
    found = await _completers(request)
    if isinstance(found, _SourceRef):
        return await _ask_source(request, found)
    names, completers = found
    if name not in names:
        raise McpError(INVALID_PARAMS, f"there is no argument {name!r:.100}")
    completer = completers.get(name)
    if completer is None:
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    known = _known_arguments(request)
    run = await request.gateway.run_for(request.caller)  # without a client: a completion asks nobody
    values: list[str] = await request.gateway.offerings.call(
        f"the completion of {name}", lambda: completer.values(typed, known, run)
    )
    return {"completion": {"values": values[:MOST], "total": len(values), "hasMore": len(values) > MOST}}


@dataclass(frozen=True, slots=True)
class _SourceRef:
    """A prompt or template of another MCP server; `ref` is how that server knows it."""

    source: SourceOffers
    ref: Mapping[str, Any]


async def _ask_source(request: McpRequest, found: _SourceRef) -> Result:
    run = await request.gateway.run_for(request.caller)
    params: dict[str, Any] = {"ref": found.ref, "argument": request.object("argument")}
    if request.params.get("context") is not None:
        params["context"] = request.object("context")
    return dict(await request.gateway.engine.mcp.request(found.source.backend, "completion/complete", params, run))


async def _completers(request: McpRequest) -> tuple[Collection[str], Mapping[str, Completer]] | _SourceRef:
    """Return the arguments of the prompt or template, and their completers, or the source that completes them."""
    ref = request.object("ref")
    match ref.get("type"), ref.get("name"), ref.get("uri"):
        case "ref/prompt", str(name), _:
            prompt = (await request.gateway.offerings.prompts()).get(name)
            if prompt is None:
                source = await source_with_prompt(request, name)
                return _SourceRef(source, {**ref, "name": source.name_there(name)})
            return [each.name for each in prompt.arguments], prompt.completers
        case "ref/resource", _, str(uri):
            resources = {each.uri: each for each in await request.gateway.offerings.resources()}
            if uri not in resources:
                for source in await request.gateway.sources(request.caller):
                    if (there := source.address_there(uri)) is not None:
                        return _SourceRef(source, {**ref, "uri": there})
                raise McpError(INVALID_PARAMS, f"there is no template {uri:.200}", {"uri": uri})
            return resources[uri].template.names, resources[uri].completers
        case _:
            form = "a `name`, or of the type ref/resource with a `uri`"
            raise McpError(INVALID_PARAMS, f"`ref` has to be of the type ref/prompt with {form}")


def _known_arguments(request: McpRequest) -> dict[str, str]:
    """Return the other arguments that are already filled in."""
    given: Any = request.object("context").get("arguments") or {}
    return {name: value for name, value in given.items() if isinstance(value, str)} if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType]


METHODS: dict[str, Handler] = {"completion/complete": complete}
