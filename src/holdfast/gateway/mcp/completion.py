"""`completion/complete`: suggests values for an argument of a prompt, or a parameter of a resource template."""

from collections.abc import Collection, Mapping
from typing import Any

from holdfast.gateway.mcp.prompts import unknown_prompt
from holdfast.gateway.mcp.requests import Handler, McpRequest, Result
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from holdfast.skills.completers import Completer

MOST = 100  # values in one answer, the limit of the protocol


async def complete(request: McpRequest) -> Result:
    """Return the values that fit what was typed so far."""
    names, completers = await _completers(request)
    argument = request.object("argument")
    name, typed = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(typed, str):
        raise McpError(INVALID_PARAMS, "`argument` has to have a `name` and a `value`, both texts")
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


async def _completers(request: McpRequest) -> tuple[Collection[str], Mapping[str, Completer]]:
    """Return the arguments of the prompt or template, and their completers."""
    ref = request.object("ref")
    match ref.get("type"), ref.get("name"), ref.get("uri"):
        case "ref/prompt", str(name), _:
            prompt = (await request.gateway.offerings.prompts()).get(name)
            if prompt is None:
                raise unknown_prompt(name)
            return [each.name for each in prompt.arguments], prompt.completers
        case "ref/resource", _, str(uri):
            resources = {each.uri: each for each in await request.gateway.offerings.resources()}
            if uri not in resources:
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
