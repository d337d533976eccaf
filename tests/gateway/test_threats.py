"""What an attacker tries who may call something: over HTTP, in front of a real back end that keeps what it is asked."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import Engine, open_engine
from holdfast.skills.sources.source import Choice
from tests.access.issuing import SECRET, shared_token
from tests.execution.backend import Service
from tests.server.conftest import make_key, running
from tests.server.mcp_wire import ask, begin, call, legacy, messages, mirror, modern, post, sse
from tests.server.wire import Reply, Site

TOOL = "get_customers_by_id"
DENIED = "delete_customers_by_id"
MISSING = "delete_customers_by_it"
ISSUER = "https://login.example.com"
TOKEN_OF_THE_BACK_END = "opensesame-of-the-crm"
INNER = ("127.0.0.1:%s", "127.0.0.2:%s", "localhost:%s", "[::1]:%s", "2130706433:%s", "0x7f.1:%s", "169.254.169.254")


def document(crm: Service, inner: Service) -> bytes:
    """A back end whose document has a secret shown to it, and leads to another that nobody may reach."""
    customer = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    hosts = [host.replace("%s", str(inner.port)) for host in INNER]
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "CRM", "version": "1"},
        "servers": [{"url": crm.url}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "security": [{"key": []}],
        "paths": {
            "/customers/{id}": {
                "get": {"summary": "A customer", "parameters": [customer]},
                "delete": {"summary": "Forget a customer", "parameters": [customer]},
            },
            **{
                f"/inner/{number}": {"get": {"servers": [{"url": f"http://{host}"}], "security": []}}
                for number, host in enumerate(hosts)
            },
        },
    }
    return json.dumps(found).encode()


@dataclass(frozen=True, slots=True)
class Front:
    """A server in front of a back end; `other` may be called, too, `inner` may not."""

    site: Site
    crm: Service
    other: Service
    inner: Service

    async def rpc(self, token: str, method: str, params: Any = ()) -> Any:
        """What a caller by JSON-RPC is answered."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return (await self.site.ask("POST", "/rpc", key=token, json=message)).json()

    async def every_way(self, token: str, name: str, arguments: Mapping[str, Any]) -> list[Any]:
        """What calling a tool is answered with, whichever way it is called."""
        params = {"name": name, "arguments": arguments}
        session = await begin(self.site, key=token)
        async with sse(self.site, key=token) as (wire, address):
            await self.site.ask("POST", address, key=token, json=legacy("tools/call", params))
            streamed = await anext(messages(wire))
        return [
            (await call(self.site, name, arguments, key=token)).json(),
            (await call(self.site, "call_tool", params, key=token)).json(),
            (await post(self.site, session, legacy("tools/call", params), key=token)).json(),
            streamed,
            await self.rpc(token, name, arguments),
            await self.rpc(token, "call_tool", params),
        ]


@pytest.fixture
async def front(config: Config, no_models: None) -> AsyncIterator[Front]:
    """A back end as tools, of which the agent `desk` may read, and an issuer whose tokens are taken."""
    issuer = Issuer.model_validate(
        {"issuer": ISSUER, "audience": ["holdfast"], "secret": SECRET, "agent_claim": "agent"}
    )
    async with AsyncExitStack() as stack:
        crm, other, inner = [await stack.enter_async_context(Service().serving()) for _ in range(3)]
        allowed = tuple(f"127.0.0.1:{service.port}" for service in (crm, other))
        config = config.model_copy(
            update={
                "access": AccessSettings(issuers=(issuer,)),
                "execution": config.execution.model_copy(update={"allow_private": allowed}),
                "server": config.server.model_copy(update={"port": 0}),
            }
        )
        engine = await stack.enter_async_context(open_engine(config=config))
        await engine.secrets.set("crm", TOKEN_OF_THE_BACK_END, hosts=["127.0.0.1"])
        given = document(crm, inner)
        await engine.sources.add("crm", document=given, choice=Choice(everything=True), auth={"key": "crm"})
        await engine.definitions.put("desk", instructions="You help.")
        await engine.tools.permit(TOOL, {"default": "none", "agents": {"desk": "read"}})
        yield Front(await stack.enter_async_context(running(engine, config)), crm, other, inner)


async def key_of_desk(engine: Engine) -> str:
    made = await engine.keys.create(await engine.tenants.id_of("default"), "ann", agent="desk")
    return made.text


def names(reply: Reply) -> list[str]:
    return [tool["name"] for tool in reply.json()["result"]["tools"]]


@pytest.mark.req("MCP-06", "EXEC-04")
async def test_a_back_end_is_shown_its_own_secret_and_never_the_callers_token(front: Front) -> None:
    key, token = await key_of_desk(front.site.engine), shared_token(ISSUER, agent="desk")
    front.crm.will_answer("/customers/moved", status=302, headers={"Location": f"{front.other.url}/there"})
    broken = f"{TOKEN_OF_THE_BACK_END} is wrong"
    front.crm.will_answer("/customers/broken", status=500, text=broken, headers={"X-Key": TOKEN_OF_THE_BACK_END})

    answers = [
        await front.every_way(bearer, TOOL, {"id": id}) for bearer in (key, token) for id in ("42", "moved", "broken")
    ]

    shown = repr([front.crm.asked, front.other.asked])
    assert (len(front.crm.asked), len(front.other.asked)) == (36, 12)
    assert all(each.headers["X-Key"] == TOKEN_OF_THE_BACK_END for each in front.crm.asked)
    assert not any({"X-Key", "Cookie", "Authorization"} & set(each.headers) for each in front.other.asked)
    assert [secret in shown for secret in (key, token, "Authorization")] == [False] * 3
    assert TOKEN_OF_THE_BACK_END not in json.dumps(answers)
    assert "/customers/42" in json.dumps(answers[0])


@pytest.mark.req("MCP-03")
async def test_what_an_argument_holds_leads_to_no_other_path_of_the_back_end(front: Front) -> None:
    key = await key_of_desk(front.site.engine)
    values = [
        "..", ".", "../admin", "%2e%2e%2fadmin", "..%2Fadmin", "..%252fadmin", "42/../../admin", "\\..\\admin", "..\\",
        "42?x=1", "42#x", "42;x", "//evil", "http://169.254.169.254/", f"{front.inner.url}/", "@evil.example",
        "\u2024\u2024/admin", "\uff0e\uff0e\uff0fadmin", "42\r\nHost: evil.example", "\0", "",
    ]  # fmt: skip

    for value in values:
        await call(front.site, TOOL, {"id": value}, key=key)
        await front.rpc(key, TOOL, {"id": value})

    assert front.crm.asked
    assert front.inner.asked == []
    for each in front.crm.asked:
        prefix, _, last = each.path.rpartition("/")
        assert prefix == "/customers", each.path
        assert last not in ("", ".", ".."), each.path
        assert not set(last) & set("?#\\\r\n"), each.path
        assert each.headers["Host"] == f"127.0.0.1:{front.crm.port}"


@pytest.mark.req("MCP-03", "EXEC-04")
async def test_a_server_that_a_document_names_is_not_reached_where_it_is_private(front: Front) -> None:
    key = await make_key(front.site.engine)

    for number in range(len(INNER)):
        answers = await front.every_way(key, f"get_inner_{number}", {})
        assert all(answer.get("error") or answer["result"]["isError"] for answer in answers), answers
        assert "something broke" not in json.dumps(answers)

    assert front.inner.asked == []


@pytest.mark.req("MCP-07")
async def test_a_tool_that_a_caller_may_not_call_is_in_no_list_and_is_as_one_that_there_is_not(front: Front) -> None:
    desk, user = await key_of_desk(front.site.engine), await make_key(front.site.engine, scopes=["read", "write"])
    session = await begin(front.site, key=desk)

    of_desk, of_user = await ask(front.site, "tools/list", key=desk), await ask(front.site, "tools/list", key=user)
    before = await post(front.site, session, legacy("tools/list"), key=desk)
    found = await call(front.site, "search_tools", {"query": "forget a customer", "limit": 20}, key=desk)
    described = await front.rpc(desk, "rpc.discover")
    denied = await front.every_way(desk, DENIED, {"id": "42"})
    missing = await front.every_way(desk, MISSING, {"id": "42"})

    assert TOOL in names(of_desk)
    assert TOOL not in names(of_user)
    assert TOOL in json.dumps(found.json())
    assert DENIED not in json.dumps([of_desk.json(), before.json(), found.json(), described])
    assert json.dumps(denied).replace(DENIED, MISSING) == json.dumps(missing)
    assert [answer["error"]["code"] for answer in (*denied[:1], *denied[2:5])] == [-32602, -32602, -32602, -32601]
    assert denied[1]["result"]["isError"]
    assert front.crm.asked == []


@pytest.mark.req("MCP-07")
async def test_an_argument_that_a_skill_fixes_cannot_be_overridden(front: Front) -> None:
    engine = front.site.engine
    await engine.skills.put("vip", instructions="Look after our best customer.")
    await engine.skills.link("vip", TOOL, config={"arguments": {"id": "7"}})
    await engine.skills.assign("desk", "vip")
    key = await key_of_desk(engine)

    given: list[dict[str, Any]] = [{}, {"id": "42"}, {"id": None}, {"id": {"id": "42"}}]
    answers = [await front.every_way(key, TOOL, arguments) for arguments in given]
    refused = await front.every_way(key, TOOL, {"ID": "42"})
    by_place = await front.rpc(key, TOOL, ["42"])
    listed = await ask(front.site, "tools/list", key=key)

    assert [each.path for each in front.crm.asked] == ["/customers/7"] * 6 * len(given)
    assert not any("error" in answer or answer["result"].get("isError") for row in answers for answer in row)
    assert all("error" in answer or answer["result"]["isError"] for answer in refused)
    assert by_place["error"]["code"] == -32602
    schemas = {tool["name"]: tool["inputSchema"] for tool in listed.json()["result"]["tools"]}
    assert "id" not in schemas[TOOL]["properties"]


@pytest.mark.req("MCP-07")
async def test_another_spelling_of_a_name_is_another_name(front: Front) -> None:
    key = await key_of_desk(front.site.engine)
    spelled = (
        TOOL.upper(), TOOL.title(), f" {TOOL}", f"{TOOL} ", f"{TOOL}\u200b", TOOL.replace("i", "\u0131"),
        TOOL.replace("c", "\u0441"), TOOL.replace("_", "\uff3f"), TOOL.replace("e", "e\u0301"), f"{TOOL}\0",
    )  # fmt: skip

    for name in spelled:
        for answer in await front.every_way(key, name, {"id": "42"}):
            code = answer.get("error", {}).get("code")
            assert code in (-32602, -32601) or "there is no tool" in json.dumps(answer), (name, answer)

    assert front.crm.asked == []


@pytest.mark.req("MCP-01")
async def test_another_spelling_of_a_method_is_another_method(front: Front) -> None:
    key = await key_of_desk(front.site.engine)
    session = await begin(front.site, key=key)
    params = {"name": TOOL, "arguments": {"id": "42"}}

    for method in (
        "Tools/Call",
        "TOOLS/CALL",
        "tools//call",
        "tools/call/",
        "/tools/call",
        "tools.call",
        "tools/c\u0430ll",
    ):
        body = modern(method, params)
        said = {**mirror(body), "mcp-method": method if method.isascii() else "tools/call"}
        new = await front.site.ask("POST", "/mcp", key=key, json=body, headers=said)
        old = await post(front.site, session, legacy(method, params), key=key)
        assert new.json()["error"]["code"] in (-32601, -32020), method
        assert old.json()["error"]["code"] == -32601, method
    body = modern("tools/call", params)
    shouted = {name.upper(): value for name, value in mirror(body).items()}
    heard = await front.site.ask("POST", "/mcp", key=key, json=body, headers=shouted)
    wrong = await front.site.ask(
        "POST", "/mcp", key=key, json=body, headers={**mirror(body), "mcp-method": "Tools/Call"}
    )

    assert not heard.json()["result"]["isError"]
    assert wrong.json()["error"]["code"] == -32020
    assert len(front.crm.asked) == 1


@pytest.mark.req("MCP-01")
async def test_headers_that_name_another_tool_than_the_body_call_none(front: Front) -> None:
    key = await key_of_desk(front.site.engine)
    body = modern("tools/call", {"name": TOOL, "arguments": {"id": "42"}})

    for name in ("recall", TOOL.upper(), f"{TOOL},recall", ""):
        headers = {**mirror(body), "mcp-name": name}
        other = await front.site.ask("POST", "/mcp", key=key, json=body, headers=headers)
        assert (other.status, other.json()["error"]["code"]) == (400, -32020), name

    assert front.crm.asked == []


@pytest.mark.req("SAFE-03")
async def test_no_page_of_another_site_reaches_the_gateway_by_whatever_name(front: Front) -> None:
    key = await key_of_desk(front.site.engine)
    session = await begin(front.site, key=key)
    body = modern("tools/call", {"name": TOOL, "arguments": {"id": "42"}})
    asked: list[tuple[str, str, Any, dict[str, str]]] = [
        ("POST", "/mcp", body, mirror(body)),
        ("POST", "/mcp", legacy("tools/call", body["params"]), {"mcp-session-id": session}),
        ("GET", "/mcp", None, {"mcp-session-id": session, "accept": "text/event-stream"}),
        ("DELETE", "/mcp", None, {"mcp-session-id": session}),
        ("POST", "/mcp/message", {}, {}),
        ("GET", "/mcp/sse", None, {"accept": "text/event-stream"}),
        ("POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": TOOL, "params": {"id": "42"}}, {}),
    ]
    pages = [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "null"},
    ]

    async with front.site.connect() as wire:
        for page in pages:
            for method, path, message, headers in asked:
                reply = await wire.ask(method, path, key=key, json=message, headers={**headers, **page})
                assert reply.status == 403, (page, method, path)
        alive = await post(wire, session, legacy("ping"), key=key)

    assert alive.status == 200
    assert front.crm.asked == []


@pytest.mark.req("MCP-06")
async def test_a_token_that_is_not_for_here_is_refused_on_every_surface(front: Front) -> None:
    wrong: list[dict[str, Any]] = [{"aud": "another-server"}, {"aud": None}, {"exp": 1}, {"sub": None}]
    tokens = [*(shared_token(ISSUER, **claims) for claims in wrong), shared_token("https://evil.example")]

    for token in tokens:
        replies = [
            await ask(front.site, "tools/list", key=token),
            await post(front.site, None, legacy("initialize"), key=token),
            await front.site.ask("POST", "/rpc", key=token, json={"jsonrpc": "2.0", "id": 1, "method": TOOL}),
            await front.site.ask("GET", "/mcp/sse", key=token),
            await front.site.ask("POST", "/mcp/message", key=token, json=legacy("ping")),
        ]

        assert [reply.status for reply in replies] == [401] * 5
        assert all('error="invalid_token"' in reply.headers["www-authenticate"] for reply in replies)
        assert not any(token in reply.body.decode() for reply in replies)
