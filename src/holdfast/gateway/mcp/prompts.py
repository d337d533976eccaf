"""`prompts/list` and `prompts/get`."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from holdfast.core.errors import Broken
from holdfast.gateway.mcp.answers_of_servers import check_weight, objects_of
from holdfast.gateway.mcp.pages import PAGE, after_of, cursor_of
from holdfast.gateway.mcp.requests import Handler, McpRequest, Result
from holdfast.gateway.source_offerings import SourceOffers
from holdfast.mcp.content import BLOCKS, Message, Text, builtin
from holdfast.mcp.protocol import INVALID_PARAMS, McpError
from holdfast.skills.prompt import McpPrompt
from holdfast.skills.sources.mcp import with_scheme


async def list_prompts(request: McpRequest) -> Result:
    """List the prompts, sorted by name."""
    after = after_of(request)
    prompts = await request.gateway.offerings.prompts()
    listed: dict[str, Mapping[str, Any]] = {}
    listed |= {name: source.prompts[name] for name, source in (await _sources_of_prompts(request)).items()}
    listed |= {name: _to_mcp(prompt) for name, prompt in prompts.items()}
    names = sorted(name for name in listed if after is None or name > after)
    more = {"nextCursor": cursor_of(names[PAGE - 1])} if len(names) > PAGE else {}
    return {"prompts": [listed[name] for name in names[:PAGE]], **more}


async def get_prompt(request: McpRequest) -> Result:
    """Return the messages of a prompt, with its arguments filled in."""
    name, values = request.text("name"), texts_of(request, "arguments")
    return await request.gateway.audited(request.caller, "prompt.get", name, lambda: _get(request, name, values))


async def _get(request: McpRequest, name: str, values: Mapping[str, str]) -> Result:
    offerings = request.gateway.offerings
    prompt = (await offerings.prompts()).get(name)
    if prompt is None:
        return await _prompt_of_source(request, name, values)
    run = await request.gateway.run_for(request.caller, request.client)
    given = await offerings.call(f"the prompt {name}", lambda: prompt.get(run, values))
    parts = cast(Sequence[object], given) if isinstance(given, list | tuple) else [given]
    messages = [_message(name, each) for each in parts]
    check_weight(f"the prompt {name}", messages, request.gateway.engine.config.gateway.max_result_bytes)
    description = {"description": prompt.description} if prompt.description else {}
    return {**description, "messages": messages}


async def source_with_prompt(request: McpRequest, name: str) -> SourceOffers:
    """Return the source that has a prompt. Raise McpError if the caller sees none."""
    source = (await _sources_of_prompts(request)).get(name)
    if source is None:
        raise unknown_prompt(name)
    return source


async def _sources_of_prompts(request: McpRequest) -> Mapping[str, SourceOffers]:
    """Return the source of each prompt. If two have one of the same name, it is the first source by name."""
    found: dict[str, SourceOffers] = {}
    for source in await request.gateway.sources(request.caller):
        for name in source.prompts:
            found.setdefault(name, source)
    return found


async def _prompt_of_source(request: McpRequest, name: str, values: Mapping[str, str]) -> Result:
    """Return the messages of a prompt of another MCP server."""
    source = await source_with_prompt(request, name)
    run = await request.gateway.run_for(request.caller, request.client)
    params = {"name": source.name_there(name), "arguments": values}
    found = await request.gateway.engine.mcp.request(source.backend, "prompts/get", params, run)
    messages = [
        {**each, "content": with_scheme(each["content"], source.backend)}
        for each in objects_of(found.get("messages"))
        if isinstance(each.get("content"), dict)
    ]
    check_weight(f"the prompt {name}", messages, request.gateway.engine.config.gateway.max_result_bytes)
    return {**found, "messages": messages}


def unknown_prompt(name: str) -> McpError:
    """Return the error for an unknown prompt."""
    return McpError(INVALID_PARAMS, f"there is no prompt {name!r:.200}: `prompts/list` lists the prompts")


def texts_of(request: McpRequest, name: str) -> dict[str, str]:
    """Return a parameter that is an object of strings."""
    given = request.object(name)
    wrong = next((key for key, value in given.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise McpError(INVALID_PARAMS, f"`{name}.{wrong:.100}` has to be a text")
    return dict(given)


def _to_mcp(prompt: McpPrompt) -> dict[str, Any]:
    """Return a prompt in the format of MCP, without empty fields."""
    fields: dict[str, Any] = {"name": prompt.name, "title": prompt.title, "description": prompt.description}
    fields["arguments"] = [
        {
            "name": each.name,
            **({"description": each.description} if each.description else {}),
            "required": each.required,
        }
        for each in prompt.arguments
    ]
    return {name: value for name, value in fields.items() if value}


def _message(prompt: str, given: object) -> dict[str, Any]:
    value: object = given.content if isinstance(given, Message) else given
    content = Text(value) if isinstance(value, str) else value
    if not isinstance(content, BLOCKS):
        raise Broken(f"the prompt {prompt} returned something that is not a message", why=type(given).__name__)
    return {"role": given.role if isinstance(given, Message) else "user", "content": builtin(content)}


METHODS: dict[str, Handler] = {"prompts/list": list_prompts, "prompts/get": get_prompt}
