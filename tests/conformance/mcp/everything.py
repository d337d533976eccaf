"""A program with one of everything that MCP knows: what the official suite calls, reads and asks for, by its names.

The suite names tools, arguments, resources and prompts, and says what must be in some answers; the rest is ours.
"""

import asyncio
import base64
import json
from typing import Annotated, Any

import msgspec

from holdfast import App, Audio, Embedded, Engine, Image, Message, ResourceContents, Run, Text
from holdfast.core.errors import Unavailable
from holdfast.mcp.inputs import Elicit, ListRoots, Sample
from holdfast.skills.client import Client

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
)  # a grey dot
WAV = base64.b64decode("UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA")  # silence
PICTURE = Image.of(PNG, "image/png")
STEP = 0.05  # seconds between two steps of a tool that tells how it goes
AWAY = 0.2  # seconds for which a client that was sent away does not miss anything
TOGGLED = "appears_and_goes"

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
STATES = ["active", "inactive", "pending"]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": STATES, "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
TITLED = [{"const": f"value{number}", "title": f"The choice {number}"} for number in (1, 2, 3)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def everything() -> App:
    """The program."""
    app = App("everything")
    for declare in (_answers, _reports, _questions, _asked_again, _schemas, _resources, _prompts):
        declare(app)
    return app


def changing(app: App, engine: Engine) -> None:
    """Let tools of the program change what there is, while it is served by an engine."""

    @app.tool
    async def appears_and_goes() -> str:
        """A tool that comes and goes."""
        return "here"

    @app.tool
    async def test_trigger_tool_change() -> str:
        """Have a tool that is there be gone, or one that is gone be there."""
        now = (await engine.tools.get(TOGGLED)).active
        await engine.tools.activate(TOGGLED, not now)
        return "gone" if now else "there"

    @app.tool
    async def test_trigger_prompt_change() -> str:
        """Have another prompt be there."""

        @app.prompt(name=f"added_{len(app.prompts)}")
        def added() -> str:
            """A prompt that was not there before."""
            return "hello"

        return "there"


def _answers(app: App) -> None:
    @app.tool
    async def test_simple_text() -> str:
        """Gives a text."""
        return "This is a simple text response for testing."

    @app.tool
    async def test_image_content() -> Image:
        """Gives a picture."""
        return PICTURE

    @app.tool
    async def test_audio_content() -> Audio:
        """Gives a sound."""
        return Audio.of(WAV, "audio/wav")

    @app.tool
    async def test_embedded_resource() -> Embedded:
        """Gives a resource with what it holds."""
        return Embedded(ResourceContents("test://embedded-resource", "text/plain", "An embedded resource."))

    @app.tool
    async def test_multiple_content_types() -> list[Any]:
        """Gives a text, a picture and a resource."""
        held = ResourceContents("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
        return [Text("Several things:"), PICTURE, Embedded(held)]

    @app.tool
    async def test_error_handling() -> str:
        """Fails, always."""
        raise RuntimeError("This tool intentionally returns an error for testing")


def _reports(app: App) -> None:
    @app.tool
    async def test_tool_with_logging(run: Run) -> str:
        """Says three times what it does."""
        return await _log(run.client)

    @app.tool
    async def test_logging_tool(run: Run) -> str:
        """Says three times what it does, to those who want to know."""
        return await _log(run.client)

    @app.tool
    async def test_tool_with_progress(run: Run) -> str:
        """Says three times how far it is."""
        for done in (0, 50, 100):
            await run.client.progress(done, total=100, message=f"{done} of 100")
            await asyncio.sleep(STEP)
        return "done"

    @app.tool
    async def test_reconnection(run: Run) -> str:
        """Has its client come back for the answer."""
        await run.client.log("info", "before")
        await run.client.detach()
        await asyncio.sleep(AWAY)
        await run.client.log("info", "after")
        return "done"


async def _log(client: Client) -> str:
    for what in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await client.log("info", what)
        await asyncio.sleep(STEP)
    return "done"


def _questions(app: App) -> None:
    @app.tool
    async def test_sampling(prompt: str, run: Run) -> str:
        """Asks the client's model."""
        reply = await run.client.sample("answer", [_said(prompt)], max_tokens=100)
        return f"LLM response: {reply.result['content']['text']}"

    @app.tool
    async def test_missing_capability(run: Run) -> str:
        """Asks the client's model, and can do nothing without."""
        return str((await run.client.sample("answer", [_said("Hello?")])).result)

    @app.tool
    async def test_elicitation(message: str, run: Run) -> str:
        """Asks the person."""
        told = {"username": {"type": "string"}, "email": {"type": "string"}}
        return _filled(await run.client.elicit("person", message, _form(told)))

    @app.tool
    async def test_streaming_elicitation(run: Run) -> str:
        """Asks the person, having said how far it is."""
        await run.client.progress(1, total=2)
        return _filled(await run.client.elicit("go_on", "Go on?", _form({"sure": {"type": "boolean"}})))

    @app.tool
    async def test_elicitation_sep1034_defaults(run: Run) -> str:
        """Asks the person, suggesting answers."""
        return _filled(await run.client.elicit("defaults", "Who are you?", _form(DEFAULTS, required=())))

    @app.tool
    async def test_elicitation_sep1330_enums(run: Run) -> str:
        """Asks the person to choose."""
        return _filled(await run.client.elicit("choices", "What will it be?", _form(ENUMS, required=())))


def _asked_again(app: App) -> None:
    name_form = _form({"name": {"type": "string"}})
    sure_form = _form({"ok": {"type": "boolean"}})

    @app.tool
    async def test_input_required_result_elicitation(run: Run) -> str:
        """Asks for a name."""
        reply = await run.client.elicit("user_name", "What is your name?", name_form)
        return f"Hello, {reply.content.get('name', 'stranger')}!"

    @app.tool
    async def test_input_required_result_sampling(run: Run) -> str:
        """Asks the client's model."""
        asked = [_said("What is the capital of France?")]
        return str((await run.client.sample("capital_question", asked, max_tokens=100)).result["content"])

    @app.tool
    async def test_input_required_result_list_roots(run: Run) -> str:
        """Asks which folders the client works in."""
        return json.dumps((await run.client.roots("client_roots")).result["roots"])

    @app.tool
    async def test_input_required_result_request_state(run: Run) -> str:
        """Asks once, and is told what it knew."""
        return f"state-ok: {(await run.client.elicit('confirm', 'Please confirm', sure_form)).action}"

    @app.tool
    async def test_input_required_result_tampered_state(run: Run) -> str:
        """Asks once, and is told what it knew."""
        return (await run.client.elicit("confirm", "Please confirm", sure_form)).action

    @app.tool
    async def test_input_required_result_multiple_inputs(run: Run) -> str:
        """Asks three things at once."""
        replies = await run.client.inputs(
            {
                "user_name": Elicit("What is your name?", name_form),
                "greeting": Sample([_said("Generate a greeting")], 50),
                "client_roots": ListRoots(),
            }
        )
        return json.dumps({name: dict(reply.result) for name, reply in replies.items()})

    @app.tool
    async def test_input_required_result_multi_round(run: Run) -> str:
        """Asks one thing after another."""
        name = (await run.client.elicit("step1", "What is your name?", name_form)).content["name"]
        color_form = _form({"color": {"type": "string"}})
        color = (await run.client.elicit("step2", "What is your favorite color?", color_form)).content["color"]
        return f"{name} likes {color}"

    @app.tool
    async def test_input_required_result_capabilities(run: Run) -> str:
        """Asks the person, or, where nobody can be asked, the client's model."""
        try:
            return _filled(await run.client.elicit("person", "What is your name?", name_form))
        except Unavailable:
            return str((await run.client.sample("model", [_said("Make up a name.")])).result)


def _schemas(app: App) -> None:
    @app.tool(schema=SCHEMA)
    async def json_schema_2020_12_tool(given: dict[str, Any]) -> str:
        """Takes what only JSON Schema 2020-12 can describe."""
        return json.dumps(given)

    @app.tool
    async def test_custom_headers(
        region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})], query: str = ""
    ) -> str:
        """Takes an argument that routers on the way can read."""
        return f"{region}: {query}"


def _resources(app: App) -> None:
    @app.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text."""
        return "This is the content of the static text resource."

    @app.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A picture."""
        return PNG

    @app.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """A text that can be watched."""
        return "Watched."

    @app.resource("test://template/{id}/data", mime_type="application/json")
    def data_of(id: str) -> str:
        """The data of an id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _prompts(app: App) -> None:
    @app.prompt
    def test_simple_prompt() -> str:
        """A prompt that takes nothing."""
        return "This is a simple prompt for testing."

    @app.prompt(complete={"arg1": _completed})
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt that takes two texts."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @app.prompt
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 - as the suite has it
        """A prompt with a resource in it."""
        held = Embedded(ResourceContents(resourceUri, "text/plain", "Embedded."))
        return [Message("user", held), Message("user", Text("Please process it."))]

    @app.prompt
    def test_prompt_with_image() -> list[Message]:
        """A prompt with a picture in it."""
        return [Message("user", PICTURE), Message("user", Text("Please look at it."))]

    @app.prompt
    async def test_input_required_result_prompt(run: Run) -> str:
        """A prompt that asks the person first."""
        form = _form({"context": {"type": "string"}})
        reply = await run.client.elicit("user_context", "What context should the prompt use?", form)
        return f"Think of {reply.content.get('context', 'nothing')}."


def _completed(value: str) -> list[str]:
    return [each for each in ("test", "tested", "testing") if each.startswith(value)]


def _said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": text}}


def _form(properties: dict[str, Any], required: tuple[str, ...] | None = None) -> dict[str, Any]:
    needed = list(properties if required is None else required)
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def _filled(reply: Any) -> str:
    return f"User response: action={reply.action}, content={json.dumps(dict(reply.content))}"


app = everything()
