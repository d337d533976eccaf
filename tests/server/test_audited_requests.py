"""Requests that change access or settings, decide or export: each has an entry in the audit, also if it was refused."""

import asyncio
import json
import logging
from typing import Any
from uuid import UUID

import pytest

from holdfast.core.errors import DatabaseAway
from holdfast.engine import Engine
from holdfast.server.app import OPERATIONS
from tests.agents.stage import Player, reached
from tests.server.conftest import make_key
from tests.server.socket_client import client
from tests.server.test_approvals import asked
from tests.server.test_browser import make_link, session_of, sign_in
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-07", "SAFE-07")

SECRET = "opensesame-4711"


async def newest(engine: Engine, count: int = 1) -> list[dict[str, Any]]:
    """The newest entries, as JSON."""
    import msgspec

    return [msgspec.to_builtins(entry) for entry in (await engine.audit.list(limit=count))[:count]]


async def everything(engine: Engine) -> str:
    """All that the audit has stored."""
    async with engine.postgres.owner() as owner:
        return await owner.value(
            "select coalesce(string_agg(t, ''), '') from (select a::text from audit a union all select p::text from "
            "audit_person p union all select o::text || o.person::text from audit_open o) as all_of_it (t)"
        )


def test_all_that_changes_something_for_others_is_audited() -> None:
    changes = {each.name for each in OPERATIONS if each.method != "GET" and each.needs in ("admin", "operator")}
    audited = {each.name for each in OPERATIONS if each.audited}

    assert changes - audited == {"publish_record", "verify_audit"}
    assert audited - changes == {
        "add_document", "add_text", "begin_connection", "change_document", "decide_approval", "decide_execution",
        "erase_knowledge", "export_audit", "export_conversation", "export_knowledge", "export_memories",
        "export_skill", "forget_memory", "import_memories", "merge_entities", "remove_connection",
        "remove_conversation", "remove_document", "unmerge_entities",
    }  # fmt: skip


async def test_a_decision_about_held_tools_has_an_entry_with_what_was_decided(site: Site, key: str) -> None:
    body = {"decision": "approve", "tools": {"get_orders": "0" * 64}}
    await site.ask("POST", "/api/sources/shop/proposals", key=key, json=body)

    (found,) = await newest(site.engine)
    assert (found["action"], found["outcome"], found["target"]) == ("decide_proposals", "refused", "shop")
    assert found["details"] == body


async def test_a_new_key_has_an_entry_that_says_whose_it_is_and_not_its_text(site: Site, key: str) -> None:
    made = await site.ask("POST", "/api/keys", key=key, json={"principal": "bob", "scopes": ["read"]})

    (found,) = await newest(site.engine)
    assert (found["action"], found["outcome"], found["user"]) == ("create_key", "done", "ann")
    assert found["target"] == made.json()["key"]["id"]
    assert found["details"] == {"principal": "bob", "scopes": ["read"]}
    assert (found["via"], found["address"]) == ("http", "127.0.0.1")
    assert found["request_id"] == made.headers["x-request-id"]
    assert made.json()["text"] not in await everything(site.engine)


async def test_a_refused_request_has_an_entry(site: Site) -> None:
    reader = await make_key(site.engine, "bob", scopes=["read"])

    await site.ask("POST", "/api/keys", key=reader, json={"principal": "bob"})
    await site.ask("DELETE", f"/api/keys/{UUID(int=7)}", key=await make_key(site.engine))

    missing, forbidden = await newest(site.engine, 2)
    assert (forbidden["outcome"], forbidden["code"], forbidden["user"]) == ("refused", "forbidden", "bob")
    assert (missing["outcome"], missing["code"], missing["target"]) == ("refused", "not_found", str(UUID(int=7)))


async def test_no_entry_has_a_secret(site: Site, key: str) -> None:
    await site.ask("PUT", "/api/secrets/shop", key=key, json={"value": SECRET, "hosts": ["shop.example"]})
    await site.ask("PUT", "/api/secrets/shop", key=key, json={"value": [SECRET]})

    second, first = await newest(site.engine, 2)
    assert (first["action"], first["target"], first["details"]) == ("set_secret", "shop", {"hosts": ["shop.example"]})
    assert (second["outcome"], second["code"]) == ("refused", "invalid_input")
    assert SECRET not in await everything(site.engine)


RULE = 'nights: deny tool "refund" between 22:00 and 06:00'


@pytest.mark.parametrize(
    ("method", "path", "body", "target", "details"),
    [
        (
            "PUT", "/api/limits", {"rule": 'user "bob": 60 requests per minute'}, "",
            {"rule": 'user "bob": 60 requests per minute', "as_operator": False},
        ),
        ("DELETE", "/api/limits?name=each+user:+requests", None, "", {"name": "each user: requests"}),
        ("PUT", "/api/gateway/rules", {"text": RULE, "version": 0}, "", {"text": RULE, "version": 0}),
        ("POST", "/api/gateway/rules", {"rules": RULE}, "", {"rules": RULE}),
        (
            "POST", "/api/sources/shop/proposals", {"decision": "approve", "tools": {"buy": "0" * 64}}, "shop",
            {"decision": "approve", "tools": {"buy": "0" * 64}},
        ),
        (
            "PUT", "/api/sources/shop", {"version": 1, "base_url": "https://shop.example", "accept_address": True},
            "shop", {"base_url": "https://shop.example", "accept_address": True},
        ),
    ],
)  # fmt: skip
async def test_an_entry_says_what_was_changed_or_was_to_be(
    site: Site, key: str, method: str, path: str, body: dict[str, Any] | None, target: str, details: dict[str, Any]
) -> None:
    await site.ask(method, path, key=key, **({} if body is None else {"json": body}))

    (found,) = await newest(site.engine)
    assert (found["target"], found["details"]) == (target, details)


async def test_who_acts_as_another_user_is_named_beside_that_user(site: Site) -> None:
    backend = await make_key(site.engine, "backend", scopes=["read", "write", "admin", "act-as"])

    await site.ask("GET", "/api/memories/export", key=backend, headers={"Holdfast-User": "ann"})

    (found,) = await newest(site.engine)
    assert (found["action"], found["user"], found["actor"]) == ("export_memories", "ann", "backend")
    assert found["key"]


@pytest.mark.req("SAFE-02")
async def test_the_entry_is_in_the_audit_of_the_tenant_that_was_changed(site: Site) -> None:
    await site.engine.tenants.create("acme")

    await site.ask(
        "POST", "/api/keys", key=site.file.token, json={"principal": "x"}, headers={"Holdfast-Tenant": "acme"}
    )

    assert await newest(site.engine) == []
    assert [found["action"] for found in await newest(site.engine.tenant("acme"))] == ["create_key"]


async def test_signing_in_and_out_have_entries(site: Site) -> None:
    signed_in = await sign_in(site, await make_link(site))
    await site.ask("POST", "/logout", headers=session_of(signed_in))
    await site.ask("POST", "/logout", headers=session_of(signed_in))

    out, into, link = await newest(site.engine, 5)
    assert [found["action"] for found in (link, into, out)] == ["create_link", "login", "logout"]
    assert (into["user"], out["user"], out["key"]) == ("ann", "ann", into["key"])


async def test_a_decision_has_an_entry_over_http_and_over_a_socket(desk: Site, model: Player) -> None:
    first = await asked(desk, model)
    await desk.ask("POST", f"/api/approvals/{first['approvals'][0]['id']}", json={"decision": "deny"})
    (by_http,) = await desk.engine.audit.list(action="decide_approval")
    await reached(desk.engine, UUID(first["run_id"]), "done")

    second = await asked(desk, model)
    async with client(desk, session_id=second["session_id"]) as ann:
        await ann.send("approve", approval_id=second["approvals"][0]["id"])
        await ann.until("done")
    by_socket, *_ = await desk.engine.audit.list(action="decide_approval")

    assert (by_http.target, by_http.details) == (first["approvals"][0]["id"], {"decision": "deny"})
    assert (by_socket.target, by_socket.details) == (second["approvals"][0]["id"], {"decision": "approve"})
    assert by_socket.via == "websocket"
    refunds = await desk.engine.audit.list(target="refund")
    assert [(found.outcome, found.code, found.via, found.agent) for found in refunds] == [
        ("done", "", "agent", "support"),
        ("refused", "forbidden", "agent", "support"),
    ]


async def test_what_users_do_with_their_own_data_has_no_entry_until_they_delete_it(site: Site, key: str) -> None:
    made = await site.ask("POST", "/api/conversations", key=key, json={})
    await site.ask("GET", "/api/keys", key=key)
    before = await newest(site.engine)

    await site.ask("DELETE", f"/api/conversations/{made.json()['id']}", key=key)
    await site.ask("DELETE", f"/api/memories/{UUID(int=7)}", key=key)

    missing, removed = await newest(site.engine, 2)
    assert before == []
    assert (removed["action"], removed["target"]) == ("remove_conversation", made.json()["id"])
    assert (missing["action"], missing["outcome"]) == ("forget_memory", "refused")


async def test_a_request_without_a_valid_key_is_counted_and_logged_now_and_then(
    site: Site, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        assert (await site.ask("GET", "/api/keys", key="hf_wrong")).status == 401

    metrics = await site.ask("GET", "/metrics", key=site.file.token)
    assert b"holdfast_rejected_requests_total 5.0" in metrics.body
    assert sum("without a valid key" in line for line in caplog.messages) == 1
    assert "hf_wrong" not in caplog.text
    assert caplog.records[-1].levelno == logging.WARNING


async def test_nothing_is_changed_while_the_audit_cannot_be_written(
    site: Site, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = site.engine.tenant(await site.engine.tenants.id_of("default"))

    async def away(*_: object) -> None:
        raise DatabaseAway("the database does not respond")

    with monkeypatch.context() as broken:
        broken.setattr(own.database, "run", away)
        broken.setattr(own.database, "now", away)
        first = await site.ask("POST", "/api/keys", key=key, json={"principal": "one"})
        second = await site.ask("POST", "/api/keys", key=key, json={"principal": "two"})

    assert (first.status, second.status) == (503, 503)
    assert "may have taken effect" in first.json()["detail"] + first.json().get("next", "")
    names = {each.principal for each in await site.engine.keys.list(await site.engine.tenants.id_of("default"))}
    assert "two" not in names


async def test_the_audit_is_listed_followed_verified_exported_and_erased_over_http(site: Site, key: str) -> None:
    for name in ("bob", "carol"):
        await site.ask("POST", "/api/keys", key=key, json={"principal": name, "scopes": ["read"]})

    listed = await site.ask("GET", "/api/audit?action=create_key&limit=1", key=key)
    rest = await site.ask("GET", f"/api/audit?before={listed.json()['cursor']}", key=key)
    start = await site.ask("GET", "/api/audit/news", key=key)
    exported = await site.ask("GET", "/api/audit/export", key=key)
    news = await site.ask("GET", f"/api/audit/news?after={start.json()['after']}", key=key)
    verified = await site.ask("POST", "/api/audit/verify", key=key, json={"limit": 2})
    erased = await site.ask("POST", "/api/audit/erase", key=key, json={"user": "ann"})
    verified_again = await site.ask(
        "POST", "/api/audit/verify", key=key, json={"progress": verified.json()["progress"]}
    )

    assert [found["details"]["principal"] for found in listed.json()["entries"]] == ["carol"]
    assert [found["details"]["principal"] for found in rest.json()["entries"]] == ["bob"]
    assert [found["action"] for found in news.json()["entries"]] == ["export_audit"]
    assert [json.loads(line).get("seq") for line in exported.body.splitlines()][1:-1] == [1, 2, 3]
    assert (verified.json()["complete"], verified.json()["fault"]) == (False, None)
    assert erased.json() == {"erased": 3}
    assert (verified_again.json()["complete"], verified_again.json()["fault"]) == (True, None)


@pytest.mark.parametrize(
    "body",
    [
        {"heads": [{"seq": 1, "hash": "x"}]},
        {"heads": [{"seq": 1, "hash": "0" * 64}, {"seq": 1, "hash": "1" * 64}]},
        {"progress": {"seq": -1, "hash": "0" * 64}},
        {"limit": 0},
    ],
)
async def test_a_verification_of_nonsense_is_refused(site: Site, key: str, body: dict[str, Any]) -> None:
    reply = await site.ask("POST", "/api/audit/verify", key=key, json=body)

    assert (reply.status, reply.code) == (400, "invalid_input")


@pytest.mark.parametrize("settings", [{"request_timeout": 1}])
async def test_an_export_can_take_longer_than_other_requests(
    site: Site, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = site.engine.tenant(await site.engine.tenants.id_of("default"))
    ends = own.audit._ends  # pyright: ignore[reportPrivateUsage]
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(1.5, later.set)

    async def ends_later() -> object:
        await later.wait()
        return await ends()

    monkeypatch.setattr(own.audit, "_ends", ends_later)
    exported = await site.ask("GET", "/api/audit/export", key=key)

    assert json.loads(exported.body.splitlines()[-1])["end"]["seq"] == 1


async def test_a_direct_call_that_is_refused_or_repeated_has_an_entry_as_one_that_is_made(desk: Site) -> None:
    ann, bob = await make_key(desk.engine), await make_key(desk.engine, "bob", scopes=["read"])
    track, right = "/api/tools/track/call", {"arguments": {"parcel": "A-1"}, "key": "once"}

    replies = [
        await desk.ask("POST", track, key=ann, json=right),
        await desk.ask("POST", track, key=ann, json=right),
        await desk.ask("POST", track, key=bob, json=right),
        await desk.ask("POST", "/api/tools/absent/call", key=ann, json=right),
        await desk.ask("POST", track, key=ann, json={"arguments": {"parcel": 7}}),
        await desk.ask("POST", track, key=ann, json={"argumentz": {}}),
        await desk.ask("POST", track, key=ann, json={"arguments": {"parcel": "A-2"}, "key": "once"}),
    ]

    own = desk.engine.tenant(await desk.engine.tenants.id_of("default"))
    found = [*reversed(await own.audit.list(action="tool.call"))]
    assert [reply.status for reply in replies] == [200, 200, 403, 404, 400, 400, 409]
    assert [(each.target, each.outcome, each.code, each.user) for each in found] == [
        ("track", "done", "", "ann"),
        ("track", "done", "", "ann"),
        ("track", "refused", "forbidden", "bob"),
        ("absent", "refused", "not_found", "ann"),
        ("track", "refused", "invalid_input", "ann"),
        ("track", "refused", "invalid_input", "ann"),
        ("track", "refused", "already_exists", "ann"),
    ]
    assert [bool(each.notes) for each in found[:2]] == [False, True]
