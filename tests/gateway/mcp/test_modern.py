"""Modern requests, without a transport: what is refused, what is answered, and how a client is asked."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast import App, Image, Run
from holdfast.access.principals import OWNER_SCOPES, USER_SCOPES, Principal
from holdfast.core.errors import Broken, DatabaseAway, Forbidden, NotFound, Unavailable
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.gateway.mcp.answers import encode_error, encode_result, error_of
from holdfast.gateway.mcp.eras import is_modern
from holdfast.gateway.mcp.headers import MirroredHeaders
from holdfast.gateway.mcp.modern import ModernRequest, answer, id_of, is_notification
from holdfast.gateway.policies.approval import QUESTION, SHOWN
from holdfast.mcp.inputs import Elicit, ListRoots
from holdfast.mcp.protocol import (
    CAPABILITIES,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    MODERN,
    NO_RESOURCE,
    SERVER_INFO,
    SUPPORTED,
    UNSUPPORTED_VERSION,
    VERSION,
    McpError,
)
from tests.clock import Clock

META: dict[str, Any] = {VERSION: MODERN, CAPABILITIES: {}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
REASON = "cannot reach db.inner:5432 as admin"
YES = {"action": "accept"}
ANN = {"action": "accept", "content": {"name": "Ann"}}
SAID = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}}


def program(paid: list[int]) -> App:
    """Tools that tell how they go, that ask, and that fail; `paid` is what was paid."""
    app = App()

    @app.tool
    async def greet(run: Run) -> str:
        """Greet somebody by name, in the words of their model."""
        name = await run.client.elicit("name", "Your name?", NAME)
        if name.action != "accept":
            return "greeted nobody"
        said = await run.client.sample("words", [])
        return f"{said.result['content']['text']} {name.content['name']}"

    @app.tool
    async def survey(run: Run) -> int:
        """Ask several things at once."""
        return len(await run.client.inputs({"name": Elicit("Your name?", NAME), "folders": ListRoots()}))

    @app.tool
    async def careful(order: str, run: Run) -> str:
        """Ask if it can, and go on if not."""
        try:
            await run.client.roots()
        except Unavailable:
            if order == "none":
                raise NotFound("there is no such order") from None
        return "went on"

    @app.tool
    async def steps(run: Run) -> list[int]:
        """Tell how it goes."""
        await run.client.progress(1, total=2, message="half")
        await run.client.log("debug", {"deep": 1})
        await run.client.log("warning", "careful", logger="steps")
        return [1, 2]

    @app.tool(idempotent=True)
    async def routed(region: str) -> str:
        """Work in a region."""
        return region

    _sell(app, paid)
    return app


def _sell(app: App, paid: list[int]) -> None:
    @app.tool(approve=True)
    async def pay(amount: int = 1, note: str = "") -> str:
        """Pay, when a person allows it."""
        paid.append(amount)
        return "paid"

    @app.tool(approve=True)
    async def tip(run: Run) -> str:
        """Pay as much as a person says, when they allow it."""
        said = await run.client.elicit("amount", "How much?", AMOUNT)
        paid.append(said.content["amount"])
        return "thanks"

    @app.tool
    async def connect() -> str:
        """Fail for reasons of its own."""
        raise RuntimeError(REASON)

    @app.tool
    async def look() -> str:
        """Find nothing there."""
        raise Unavailable("the shelf cannot be reached", why=REASON, next="Wait.")

    @app.tool
    async def draw(size: int) -> Image:
        """Draw something large."""
        return Image.of(b"x" * size, "image/png")

    @app.tool
    async def count(to: int) -> list[int]:
        """Count."""
        return [*range(to)]

    app.agent("clerk", instructions="You pay.", tools=[pay, draw], memory=False)
    app.agent("careful", instructions="You ask first.", tools=[draw], approve=["draw", "connect", "remember"])


@pytest.fixture
def paid() -> list[int]:
    """What was paid."""
    return []


@pytest.fixture
def app(paid: list[int]) -> App:
    """The program."""
    return program(paid)


class Caller:
    """Somebody who makes modern requests to a gateway, and takes down what they are told before the answer."""

    def __init__(self, gateway: Gateway, who: Principal, capabilities: Mapping[str, Any]) -> None:
        self.gateway = gateway
        self.who = who
        self.capabilities = capabilities
        self.told: list[tuple[str, Mapping[str, Any]]] = []

    async def ask(self, method: str, params: Mapping[str, Any] = {}, **meta: Any) -> dict[str, Any]:
        """The result of a request."""
        whole = {**params, "_meta": {**META, CAPABILITIES: self.capabilities, **meta}}
        envelope = ModernRequest.of({"jsonrpc": "2.0", "id": 1, "method": method, "params": whole})
        return await answer(envelope, self.gateway, self.who, self._hear)

    async def call(self, name: str, arguments: Mapping[str, Any] = {}, **params: Any) -> dict[str, Any]:
        """The result of calling a tool."""
        return await self.ask("tools/call", {"name": name, "arguments": arguments, **params})

    async def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append((method, params))


@pytest.fixture
async def ann(gateway: Gateway) -> Caller:
    """A caller whose client can be asked anything."""
    who = Principal(await gateway.engine.database.tenant(), "ann", OWNER_SCOPES)
    return Caller(gateway, who, {"elicitation": {}, "sampling": {}, "roots": {}})


def message(**parts: Any) -> dict[str, Any]:
    """A request that is well formed, but for what is given."""
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": META}, **parts}


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([message()], INVALID_REQUEST),
        (7, INVALID_REQUEST),
        (message(jsonrpc="1.0"), INVALID_REQUEST),
        (message(method=7), INVALID_REQUEST),
        (message(id=None), INVALID_REQUEST),
        (message(id=True), INVALID_REQUEST),
        (message(id={}), INVALID_REQUEST),
        (message(params=[]), INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 7, "result": {}}, INVALID_REQUEST),
        (message(params={}), INVALID_PARAMS),
        (message(params={"_meta": {VERSION: MODERN}}), INVALID_PARAMS),
        (message(params={"_meta": {CAPABILITIES: {}}}), INVALID_PARAMS),
        (message(params={"_meta": {**META, CAPABILITIES: []}}), INVALID_PARAMS),
        (message(params={"_meta": {**META, LOG_LEVEL: "loud"}}), INVALID_PARAMS),
        (message(params={"_meta": {**META, "progressToken": {}}}), INVALID_PARAMS),
        (message(params={"_meta": {**META, VERSION: "1900-01-01"}}), UNSUPPORTED_VERSION),
        (message(params={"_meta": {**META, VERSION: 7}}), UNSUPPORTED_VERSION),
    ],
)
def test_a_message_that_is_not_well_formed_is_refused(given: object, code: int) -> None:
    with pytest.raises(McpError) as refusal:
        ModernRequest.of(given)

    assert (refusal.value.code, refusal.value.status) == (code, 400)


@pytest.mark.req("MCP-01")
def test_a_version_that_is_not_spoken_is_told_those_that_are() -> None:
    with pytest.raises(McpError) as refusal:
        ModernRequest.of(message(params={"_meta": {**META, VERSION: "2027-01-01"}}))

    assert refusal.value.data == {"supported": list(SUPPORTED), "requested": "2027-01-01"}


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("given", "version", "modern"),
    [
        (message(), None, True),
        (message(), "2025-11-25", True),
        (message(method="initialize"), None, True),
        (message(params={}), MODERN, True),
        (message(params={}), "2027-01-01", True),
        ([message()], MODERN, True),
        (message(params={}), None, False),
        (message(params={}), "2025-06-18", False),
        (message(method="initialize", params={}), MODERN, False),
        ([message()], None, False),
        (7, None, False),
    ],
)
def test_the_era_of_a_message_is_told_by_how_it_opens(given: object, version: str | None, modern: bool) -> None:
    assert is_modern(given, version) is modern


@pytest.mark.req("MCP-01")
def test_a_notification_has_no_id_at_all() -> None:
    assert is_notification({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    assert not is_notification({"jsonrpc": "2.0", "method": "tools/list", "id": None})
    assert not is_notification({"jsonrpc": "2.0", "result": {}})
    assert not is_notification([])
    assert [id_of({"id": id}) for id in ("a", 7, True, 1.5, None)] == ["a", 7, None, None, None]


@pytest.mark.req("MCP-01", "ENG-07")
def test_what_broke_is_not_told_and_what_failed_is_told_by_its_code(caplog: pytest.LogCaptureFixture) -> None:
    broken = [error_of(each, modern=True, request_id="r-1") for each in (KeyError("secret"), Broken("secret"))]
    away = error_of(DatabaseAway("the database is away", why="secret host", next="Wait."), modern=True)
    forbidden = error_of(Forbidden("not this", why="no scope", next="Ask.", scope="admin"), modern=True)

    assert all(each["code"] == -32603 and each["data"] == {"code": "broken", "requestId": "r-1"} for each in broken)
    assert "secret" not in str([broken, away])
    assert "r-1" in caplog.text
    assert "secret" in caplog.text
    assert (away["code"], away["message"]) == (-31503, "the database is away. Wait.")
    assert forbidden == {
        "code": -31403,
        "message": "not this: no scope. Ask.",
        "data": {"scope": "admin", "code": "forbidden"},
    }


@pytest.mark.req("MCP-01")
def test_a_resource_that_is_not_there_has_the_code_of_its_era() -> None:
    error = McpError(NO_RESOURCE, "there is none", {"uri": "shop://x"})

    assert error_of(error, modern=True) == {
        "code": INVALID_PARAMS,
        "message": "there is none",
        "data": {"uri": "shop://x"},
    }
    assert error_of(error, modern=False)["code"] == NO_RESOURCE


@pytest.mark.req("MCP-01")
def test_an_id_comes_back_as_it_was() -> None:
    assert encode_result("\ud83d", {"a": 1}) == b'{"jsonrpc":"2.0","id":"\\ud83d","result":{"a":1}}'
    assert encode_error(None, {"code": 1}) == b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}'


@pytest.mark.req("MCP-01")
async def test_results_say_what_they_are_who_gives_them_and_how_long_they_hold(ann: Caller) -> None:
    discovered, tools, called = (
        await ann.ask("server/discover"),
        await ann.ask("tools/list"),
        await ann.call("steps"),
    )

    for result in (discovered, tools, called):
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_INFO]["name"] == "holdfast"
    assert discovered["supportedVersions"] == SUPPORTED
    assert {"tools", "resources", "prompts", "completions", "logging"} == discovered["capabilities"].keys()
    assert (tools["cacheScope"], tools["ttlMs"] >= 0) == ("private", True)
    assert "ttlMs" not in called
    assert called["structuredContent"] == [1, 2]
    for params, method in (({"cursor": "x"}, "tools/list"), ({}, "resources/subscribe"), ({}, "ping")):
        with pytest.raises(McpError) as refusal:
            await ann.ask(method, params)
        expected = (INVALID_PARAMS, 400) if params else (METHOD_NOT_FOUND, 404)
        assert (refusal.value.code, refusal.value.status) == expected


@pytest.mark.req("MCP-01")
async def test_a_client_is_told_of_progress_and_logs_only_if_it_asks_for_them(ann: Caller) -> None:
    await ann.call("steps")
    quiet, ann.told = ann.told, []
    await ann.ask("tools/call", {"name": "steps"}, progressToken="p", **{LOG_LEVEL: "info"})

    assert quiet == []
    assert ann.told == [
        ("notifications/progress", {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}),
        ("notifications/message", {"level": "warning", "logger": "steps", "data": "careful"}),
    ]


@pytest.mark.req("MCP-01", "MCP-08")
async def test_a_tool_that_asks_is_run_anew_with_the_answers_wherever_they_come(
    ann: Caller, gateways: Gateways, app: App
) -> None:
    elsewhere = Caller(Gateways(gateways.of(ann.who.tenant).engine, app).of(ann.who.tenant), ann.who, ann.capabilities)

    first = await ann.call("greet")
    second = await elsewhere.call("greet", inputResponses={"name": ANN}, requestState=first["requestState"])
    last = await ann.call(
        "greet",
        inputResponses={"words": SAID, "name": {"action": "decline"}, "unasked": {}},
        requestState=second["requestState"],
    )

    assert first["resultType"] == second["resultType"] == "input_required"
    assert first["inputRequests"] == {
        "name": {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": "Your name?", "requestedSchema": NAME},
        }
    }
    assert [*second["inputRequests"]] == ["words"]
    assert last["resultType"] == "complete"
    assert last["content"][0]["text"] == "hello Ann"  # what was answered before stays as it was


@pytest.mark.req("MCP-01")
async def test_what_was_not_answered_or_does_not_fit_is_asked_again(ann: Caller) -> None:
    wrong = {"action": "accept", "content": {"name": 7}}

    partly = await ann.call("survey", inputResponses={"folders": {"roots": []}, "else": {}})
    again = await ann.call("survey", inputResponses={"name": wrong}, requestState=partly["requestState"])
    done = await ann.call("survey", inputResponses={"name": ANN}, requestState=again["requestState"])

    assert [*partly["inputRequests"]] == [*again["inputRequests"]] == ["name"]
    assert "does not fit" in again["inputRequests"]["name"]["params"]["message"]
    assert done["structuredContent"] == 2


@pytest.mark.req("MCP-01")
async def test_answers_that_are_no_objects_are_refused(ann: Caller) -> None:
    for given in (None, [7], {"name": 7}, {"name": None}):
        with pytest.raises(McpError, match="object of objects") as refusal:
            await ann.call("greet", inputResponses=given)
        assert refusal.value.code == INVALID_PARAMS


@pytest.mark.req("MCP-08")
async def test_a_state_is_no_use_to_another_user_and_expires_by_the_clock_of_the_database(
    ann: Caller, gateway: Gateway
) -> None:
    bob = Caller(gateway, Principal(ann.who.tenant, "bob", OWNER_SCOPES), ann.capabilities)
    asked = await ann.call("greet")
    retry = {"inputResponses": {"name": ANN}, "requestState": asked["requestState"]}

    with pytest.raises(McpError, match="another caller"):
        await bob.call("greet", **retry)
    with pytest.raises(McpError, match="another request"):
        await ann.call("survey", **retry)
    await Clock(gateway.engine).advance(timedelta(minutes=16))
    with pytest.raises(McpError, match="has expired"):
        await ann.call("greet", **retry)


@pytest.mark.req("MCP-01")
async def test_a_client_is_not_asked_for_what_it_has_not_declared(ann: Caller) -> None:
    ann.capabilities = {"elicitation": {}}

    went_on = await ann.call("careful", {"order": "7"})
    failed = await ann.call("careful", {"order": "none"})
    with pytest.raises(McpError) as refusal:
        await ann.call("greet", inputResponses={"name": ANN})

    assert went_on["content"][0]["text"] == "went on"
    assert failed["isError"]
    assert "there is no such order" in failed["content"][0]["text"]
    assert (refusal.value.code, refusal.value.status) == (MISSING_CAPABILITY, 400)
    assert refusal.value.data == {"requiredCapabilities": {"sampling": {}}}


@pytest.mark.req("MCP-01")
async def test_a_tool_that_a_person_has_to_allow_asks_for_it_first(ann: Caller, paid: list[int]) -> None:
    results: list[dict[str, Any]] = []
    for action in ("accept", "decline"):
        asked = await ann.call("pay", {"amount": 7})
        [question] = asked["inputRequests"]
        state = asked["requestState"]
        results.append(
            await ann.call("pay", {"amount": 7}, inputResponses={question: {"action": action}}, requestState=state)
        )
    ann.capabilities = {}
    with pytest.raises(McpError) as refusal:
        await ann.call("pay")

    assert [result["isError"] for result in results] == [False, True]
    assert paid == [7]
    assert refusal.value.data == {"requiredCapabilities": {"elicitation": {}}}


@pytest.mark.req("MCP-01", "MCP-08", "SAFE-03")
async def test_nothing_is_allowed_before_it_was_asked_nor_twice(ann: Caller, paid: list[int], app: App) -> None:
    elsewhere = Caller(Gateways(ann.gateway.engine, app).of(ann.who.tenant), ann.who, ann.capabilities)
    unasked = await ann.call("pay", inputResponses={QUESTION: YES})
    other = await ann.call("greet")
    with pytest.raises(McpError, match="another request"):
        await ann.call("pay", inputResponses={QUESTION: YES}, requestState=other["requestState"])

    allowed = {"inputResponses": {QUESTION: YES}, "requestState": unasked["requestState"]}
    first = await ann.call("pay", **allowed)
    for caller in (ann, elsewhere):
        with pytest.raises(McpError, match="was used before, and is good for one call") as again:
            await caller.call("pay", **allowed)

    assert unasked["resultType"] == "input_required"
    assert first["content"][0]["text"] == "paid"
    assert again.value.code == INVALID_PARAMS
    assert paid == [1]


@pytest.mark.req("MCP-01", "MCP-08", "SAFE-03")
async def test_what_a_tool_asks_after_it_was_allowed_is_part_of_the_one_call(ann: Caller, paid: list[int]) -> None:
    first = await ann.call("tip")
    allowed = {"inputResponses": {QUESTION: YES}, "requestState": first["requestState"]}
    second = await ann.call("tip", **allowed)
    said = {"inputResponses": {"amount": {**YES, "content": {"amount": 3}}}, "requestState": second["requestState"]}
    last = await ann.call("tip", **said)
    for again in (allowed, said):
        with pytest.raises(McpError, match="was used before"):
            await ann.call("tip", **again)

    assert [*first["inputRequests"]] == [QUESTION]
    assert [*second["inputRequests"]] == ["amount"]
    assert last["content"][0]["text"] == "thanks"
    assert paid == [3]


@pytest.mark.req("MCP-08")
async def test_states_that_were_used_are_forgotten_when_they_have_expired(ann: Caller, gateway: Gateway) -> None:
    async def allow() -> None:
        asked = await ann.call("pay")
        await ann.call("pay", inputResponses={QUESTION: YES}, requestState=asked["requestState"])

    await allow()
    await allow()
    kept = await gateway.engine.database.value("select count(*) from used_state where tenant_id = $1")
    await Clock(gateway.engine).advance(timedelta(minutes=16))
    await allow()

    assert kept == 2
    assert await gateway.engine.database.value("select count(*) from used_state where tenant_id = $1") == 1


@pytest.mark.req("MCP-01", "SAFE-03")
async def test_a_person_is_told_how_much_of_what_they_allow_they_do_not_see(ann: Caller) -> None:
    short = await ann.call("pay", {"amount": 7, "note": "for tea"})
    long = await ann.call("pay", {"amount": 7, "note": "x" * SHOWN})

    told = [asked["inputRequests"][QUESTION]["params"]["message"] for asked in (short, long)]
    assert told[0] == 'Allow pay?\n\n{"amount":7,"note":"for tea"}'
    assert told[1].startswith("Allow pay? 22 characters of its arguments are not shown here.\n\n")


@pytest.mark.req("MCP-07", "SAFE-03")
@pytest.mark.parametrize(("agent", "name"), [("clerk", "pay"), ("careful", "draw"), ("careful", "remember")])
async def test_no_agent_allows_its_own_calls(ann: Caller, paid: list[int], agent: str, name: str) -> None:
    ann.who = replace(ann.who, scopes=USER_SCOPES, agent=agent)
    arguments = {"pay": {}, "draw": {"size": 1}, "remember": {"content": "tea"}}[name]

    refused = [
        await ann.call(name, arguments),
        await ann.call(name, arguments, inputResponses={QUESTION: YES}),
        await ann.call("call_tool", {"name": name, "arguments": arguments}),
    ]

    for result in refused:
        assert result["isError"], result
        assert f"a person has to allow each call of {name}: the caller acts for" in result["content"][0]["text"]
    assert paid == []


@pytest.mark.req("MCP-07", "SAFE-03")
async def test_what_an_agent_does_not_do_by_itself_is_asked_whoever_gives_it_the_tool_and_of_no_other_caller(
    ann: Caller,
) -> None:
    permitted = replace(ann.who, scopes=USER_SCOPES, agent="careful")
    await ann.gateway.engine.tools.permit("connect", {"default": "execute"})
    await ann.gateway.inventory.current()

    by_ann = await ann.call("draw", {"size": 1})
    ann.who = permitted
    by_permission = await ann.call("connect")

    assert not by_ann["isError"]
    assert "a person has to allow each call of connect" in by_permission["content"][0]["text"]


@pytest.mark.req("MCP-01", "ENG-07")
async def test_why_a_tool_broke_is_in_the_log_alone(ann: Caller, caplog: pytest.LogCaptureFixture) -> None:
    broke, away = await ann.call("connect"), await ann.call("look")

    told = [result["content"][0]["text"] for result in (broke, away)]
    assert broke["isError"]
    assert away["isError"]
    found = re.fullmatch(
        r"connect failed: internal error\. Report it with the id (\S+): the server's log has .*", told[0]
    )
    assert found is not None
    assert any(found[1] in line and REASON in line for line in caplog.messages)
    assert told[1] == "look failed: the shelf cannot be reached. Wait."


@pytest.mark.req("MCP-10")
@pytest.mark.parametrize("settings", [{"max_result_bytes": 5000}])
async def test_no_more_is_sent_than_a_result_may_have(ann: Caller) -> None:
    small, large = await ann.call("draw", {"size": 3000}), await ann.call("draw", {"size": 5000})
    few, many = await ann.call("count", {"to": 1000}), await ann.call("count", {"to": 2000})

    assert [block["type"] for block in small["content"]] == ["image"]
    assert large["isError"]
    assert "the result is too large: at most 5000 characters are given" in large["content"][0]["text"]
    assert few["structuredContent"] == [*range(1000)]
    assert "structuredContent" not in many
    assert len(many["content"][0]["text"]) <= 5000


@pytest.mark.req("MCP-10")
async def test_a_call_that_needs_nothing_new_asks_the_database_nothing(
    ann: Caller, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, calling = list[str](), ContextVar("calling", default=False)
    calling.set(True)  # what the process does beside it now and then is no part of a call
    await ann.call("routed", {"region": "west"})
    real = type(gateway.engine.database)._call  # pyright: ignore[reportPrivateUsage]

    async def counted(self: Any, method: str, statement: str, *args: Any, **options: Any) -> Any:
        if calling.get():
            asked.append(statement)
        return await real(self, method, statement, *args, **options)

    monkeypatch.setattr(type(gateway.engine.database), "_call", counted)
    await gateway.inventory.current()
    asked.clear()
    results = [await ann.call("routed", {"region": "west"}) for _ in range(20)]

    assert [result["content"][0]["text"] for result in results] == ["west"] * 20
    assert asked == []


@pytest.mark.req("MCP-01")
async def test_a_tool_of_which_nothing_is_repeated_takes_any_headers(ann: Caller) -> None:
    params = {"name": "routed", "arguments": {"region": "west"}, "_meta": META}
    headers = [
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"routed"),
        (b"mcp-param-region", b"east"),
    ]
    mirror = MirroredHeaders(headers)
    envelope = ModernRequest.of(message(method="tools/call", params=params), mirror)

    result = await answer(envelope, ann.gateway, ann.who, ann._hear, mirror)  # pyright: ignore[reportPrivateUsage]

    assert result["content"][0]["text"] == "west"
