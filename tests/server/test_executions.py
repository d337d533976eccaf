import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.engine import Engine
from tests.execution.backend import Service
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

pytestmark = pytest.mark.req("EXEC-02")

UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def config(config: Config) -> Config:
    """Settings with which tools may call services of this machine."""
    execution = config.execution.model_copy(update={"allow_private": ("127.0.0.1",)})
    return config.model_copy(update={"execution": execution})


@pytest.fixture
async def engine(words_only: Engine) -> Engine:
    """An engine without a model, which nothing here needs."""
    return words_only


@pytest.fixture
async def service(site: Site) -> AsyncIterator[Service]:
    """A back end, with the tool `order` that posts to it."""
    async with Service().serving() as service:
        service.will_answer("/orders", text='{"order": 7}', content_type="application/json")
        await register(site, "order", service, permissions={"users": "execute"})
        yield service


async def register(site: Site, name: str, service: Service, **more: Any) -> None:
    """Have a tool post to the service's orders."""
    properties = {"item": {"type": "string"}, "count": {"type": "integer", "default": 1}}
    await site.engine.tools.put(
        name,
        description="Order something.",
        parameters={"type": "object", "properties": properties, "required": ["item"]},
        kind="rest",
        method="POST",
        endpoint=f"{service.url}/orders",
        **more,
    )


async def order(site: Site, caller: str | None = None, tool: str = "order", **body: Any) -> Reply:
    return await site.ask("POST", f"/api/tools/{tool}/call", key=caller, json={"arguments": {"item": "tea"}, **body})


async def users(site: Site) -> tuple[str, str, str]:
    """Keys of two users and of an admin."""
    ann, bob = [await make_key(site.engine, name, scopes=["read", "write"]) for name in ("ann", "bob")]
    return ann, bob, await make_key(site.engine, "root")


@pytest.mark.req("EXEC-01", "SKILL-03")
async def test_a_tool_is_called_and_its_execution_kept(site: Site, service: Service) -> None:
    done = (await order(site)).json()
    kept = (await site.ask("GET", f"/api/executions/{done['id']}")).json()

    assert (done["status"], done["result"], done["user"], done["agent"]) == ("done", {"order": 7}, "local", None)
    assert done["arguments"] == {"item": "tea", "count": 1}
    assert kept == done
    assert len(service.asked) == 1


@pytest.mark.req("SKILL-03", "ENG-07")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [({}, "`item`"), ({"item": 7}, "`item`"), ({"item": "tea", "size": 1}, "size"), ({"item": "t" * 2**21}, "large")],
)
async def test_arguments_that_do_not_fit_are_refused_and_nothing_is_called(
    site: Site, service: Service, arguments: Any, said: str
) -> None:
    reply = await order(site, arguments=arguments)

    assert (reply.status, reply.code) == (400, "invalid_input")
    assert said in reply.json()["detail"]
    assert service.asked == []
    assert (await site.ask("GET", "/api/executions")).json() == {"executions": [], "cursor": None}


async def test_a_tool_that_fails_says_so_in_its_execution(site: Site, service: Service) -> None:
    service.will_answer("/orders", status=409, text="sold out")

    reply = await order(site)

    assert (reply.status, reply.json()["status"]) == (200, "failed")
    assert "sold out" in reply.json()["text"]


@pytest.mark.req("EXEC-05")
async def test_the_same_key_calls_once_and_is_the_caller_s_own(site: Site, service: Service) -> None:
    ann, bob, admin = await users(site)

    first = await order(site, ann, key="order-1")
    again = await order(site, ann, key="order-1")
    otherwise = await order(site, ann, key="order-1", arguments={"item": "coffee"})
    his = await order(site, bob, key="order-1")

    assert again.json() == first.json()
    assert (otherwise.status, otherwise.code) == (409, "already_exists")
    assert (his.status, his.json()["user"]) == (200, "bob")
    assert his.json()["id"] != first.json()["id"]
    assert len(service.asked) == 2
    assert (await order(site, admin, key="order-2")).json()["user"] == "root"


@pytest.mark.req("MCP-07", "SAFE-03")
async def test_a_key_of_an_agent_calls_tools_by_the_gateway_alone(site: Site, service: Service) -> None:
    await site.engine.definitions.put("support", instructions="Help.")
    await register(site, "denied", service, permissions={"users": "execute", "agents": {"support": "none"}})
    tenant, scopes = await site.engine.tenants.id_of("default"), frozenset({"read", "write"})
    agents = await site.engine.keys.create(tenant, "ann", scopes=scopes, agent="support")

    replies = [await order(site, agents.text, tool=tool) for tool in ("order", "denied", "nothing")]

    assert [(reply.status, reply.code) for reply in replies] == [(403, "forbidden")] * 3
    assert all("/mcp or /rpc" in reply.json()["detail"] for reply in replies)
    assert service.asked == []


@pytest.mark.req("SAFE-03")
async def test_calls_are_seen_by_who_made_them_and_by_admins(site: Site, service: Service) -> None:
    ann, bob, admin = await users(site)
    hers = [(await order(site, ann)).json()["id"] for _ in range(3)]
    his = (await order(site, bob)).json()["id"]

    page = (await site.ask("GET", "/api/executions?tool=order&status=done&limit=2", key=ann)).json()
    rest = (await site.ask("GET", f"/api/executions?tool=order&before={page['cursor']}", key=ann)).json()
    everyone = (await site.ask("GET", "/api/executions", key=admin)).json()
    of_bob = (await site.ask("GET", "/api/executions?user=bob", key=admin)).json()

    assert [each["id"] for each in page["executions"] + rest["executions"]] == hers[::-1]
    assert rest["cursor"] is None
    assert len(everyone["executions"]) == 4
    assert [each["id"] for each in of_bob["executions"]] == [his]
    assert (await site.ask("GET", "/api/executions?user=bob", key=ann)).status == 403
    for method, path in [("GET", ""), ("GET", "/output"), ("POST", "/cancel"), ("POST", "/decision")]:
        body = {"decision": "done"} if path == "/decision" else None
        reply = await site.ask(method, f"/api/executions/{his}{path}", key=ann, json=body)
        unknown = await site.ask(method, f"/api/executions/{UNKNOWN}{path}", key=ann, json=body)
        assert (reply.status, reply.code) == (unknown.status, unknown.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        (b"<script>alert(1)</script>" + b"x" * 1_200_000, "text/html", "text/plain; charset=utf-8"),
        (b"%PDF-1.7\0\xff", "application/pdf", "application/pdf"),
    ],
    ids=["a page", "a file"],
)
async def test_the_whole_output_is_a_file_that_no_browser_shows(
    site: Site, service: Service, body: bytes, kind: str, told: str
) -> None:
    service.will_answer("/orders", body=body, content_type=kind)
    done = (await order(site)).json()

    output = await site.ask("GET", f"/api/executions/{done['id']}/output")

    assert (done["status"], done["has_output"]) == ("done", True)
    assert output.body == body
    assert output.headers["content-type"] == told
    assert output.headers["content-disposition"] == f"attachment; filename*=UTF-8''{done['id']}"
    assert output.headers["x-content-type-options"] == "nosniff"


async def test_a_call_under_way_is_cancelled(site: Site, service: Service) -> None:
    arrived, never = asyncio.Event(), asyncio.Event()

    async def wait(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await never.wait()
        return web.Response()

    service.will_answer("/orders", wait)

    async with asyncio.timeout(20):
        calling = asyncio.create_task(order(site))
        await arrived.wait()
        (running,) = (await site.ask("GET", "/api/executions?status=running")).json()["executions"]
        cancelled = await site.ask("POST", f"/api/executions/{running['id']}/cancel")
        reply = await calling

    assert cancelled.json()["status"] == "cancelled"
    assert (reply.status, reply.json()["status"]) == (200, "cancelled")
    assert (await site.ask("POST", f"/api/executions/{running['id']}/cancel")).status == 200


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize(
    ("decision", "status", "calls"), [("done", "done", 1), ("failed", "failed", 1), ("again", "done", 2)]
)
async def test_a_person_decides_about_a_call_that_nobody_knows_the_end_of(
    site: Site, service: Service, decision: str, status: str, calls: int
) -> None:
    done = (await order(site, key="order-1")).json()
    known = await site.ask("POST", f"/api/executions/{done['id']}/decision", json={"decision": decision})
    await site.engine.database.run(
        "update tool_executions set status = 'unknown', output_result = null where tenant_id = $1 and id = $2",
        done["id"],
    )

    unknown = await order(site, key="order-1")
    decided = await site.ask(
        "POST", f"/api/executions/{done['id']}/decision", json={"decision": decision, "comment": "I looked."}
    )

    assert (known.status, known.code) == (409, "conflict")
    assert (unknown.status, unknown.code) == (409, "conflict")
    assert "done, failed or again" in unknown.json()["next"]
    assert (decided.status, decided.json()["status"]) == (200, status)
    assert len(service.asked) == calls


@pytest.mark.req("SAFE-03")
async def test_what_a_person_has_to_allow_is_called_directly_by_admins_alone(site: Site, service: Service) -> None:
    ann, _, admin = await users(site)
    reader = await make_key(site.engine, "eve", scopes=["read"])
    await register(site, "pay", service, approve=True, permissions={"users": "execute"})

    refused = await order(site, ann, "pay")
    reading = await order(site, reader)
    done = await order(site, admin, "pay")

    assert (refused.status, refused.code) == (403, "forbidden")
    assert (reading.status, reading.code) == (403, "forbidden")
    assert done.json()["status"] == "done"


@pytest.mark.req("SAFE-03", "SKILL-07")
@pytest.mark.parametrize("permissions", [{}, {"users": "write"}, {"default": "execute"}, {"users": "none"}])
async def test_what_is_not_opened_to_users_is_called_by_hand_by_admins_alone(
    site: Site, service: Service, permissions: dict[str, Any]
) -> None:
    ann, _, admin = await users(site)
    await register(site, "wipe", service, permissions=permissions)

    refused = await order(site, ann, "wipe")
    done = await order(site, admin, "wipe")

    assert (refused.status, refused.code) == (403, "forbidden")
    assert "it is not open to users" in refused.json()["detail"]
    assert "holdfast tools permit wipe --users LEVEL" in refused.json()["next"]
    assert done.json()["status"] == "done"
    assert len(service.asked) == 1


@pytest.mark.req("SAFE-03", "SKILL-07")
async def test_a_call_is_not_made_again_by_who_may_call_the_tool_no_longer(site: Site, service: Service) -> None:
    ann, _, _ = await users(site)
    done = (await order(site, ann)).json()
    await site.engine.database.run(
        "update tool_executions set status = 'unknown', output_result = null where tenant_id = $1 and id = $2",
        done["id"],
    )
    await site.engine.tools.permit("order", {})

    refused = await site.ask("POST", f"/api/executions/{done['id']}/decision", key=ann, json={"decision": "again"})

    assert (refused.status, refused.code) == (403, "forbidden")
    assert len(service.asked) == 1


async def test_a_tool_that_is_switched_off_is_not_called(site: Site, service: Service) -> None:
    ann, _, admin = await users(site)
    await site.engine.tools.activate("order", False)

    assert (await order(site, ann)).status == 404
    assert (await order(site, admin)).json()["status"] == "failed"
    assert (await order(site, admin, "nothing")).status == 404
    assert service.asked == []


async def test_a_function_of_the_program_that_is_served_is_called(desk: Site) -> None:
    reply = await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "AB-1"}})

    assert (reply.json()["status"], reply.json()["text"]) == ("done", "AB-1 is in Cologne")


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "?status=odd", None),
        ("GET", "?limit=0", None),
        ("GET", "?before=7", None),
        ("GET", "/7", None),
        ("POST", f"/{UNKNOWN}/decision", {"decision": "maybe"}),
    ],
)
async def test_what_cannot_be_asked_is_refused(site: Site, method: str, path: str, body: Any) -> None:
    reply = await site.ask(method, f"/api/executions{path}", json=body)

    assert (reply.status, reply.code) == (400, "invalid_input")
