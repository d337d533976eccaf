from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.agents.stage import Player, calls, nodes, reached
from tests.server.chatting import say
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("AGENT-05")


async def asked(site: Site, model: Player, key: str | None = None) -> dict[str, Any]:
    """A chat that waits for a person."""
    model.says(calls(("refund", {"order": "7"})), "Thank you.")
    reply = await say(site, "Refund 7", key=key)
    assert reply.status == 202, reply
    return reply.json()


@pytest.mark.parametrize(
    ("decision", "observed"), [("approve", "paid back 7"), ("deny", "A person did not allow this call. They said: no")]
)
async def test_a_person_decides_and_the_turn_goes_on(desk: Site, model: Player, decision: str, observed: str) -> None:
    told = await asked(desk, model)
    (approval,) = told["approvals"]

    listed = (await desk.ask("GET", "/api/approvals")).json()["approvals"]
    decided = await desk.ask("POST", f"/api/approvals/{approval['id']}", json={"decision": decision, "comment": "no"})
    await reached(desk.engine, UUID(told["run_id"]), "done")

    assert listed == [approval]
    assert (approval["tool"], approval["arguments"], approval["state"]) == ("refund", {"order": "7"}, "pending")
    assert (decided.status, decided.json()["decided_by"]) == (200, "local")
    said = await nodes(desk.engine, UUID(told["conversation_id"]))
    assert [node.content for node in said if node.context == "text:agent:tool"] == [observed]
    assert (await desk.ask("GET", "/api/approvals")).json()["approvals"] == []
    assert (await desk.ask("GET", f"/api/approvals/{approval['id']}")).json() == decided.json()


async def test_what_was_decided_stays_and_to_repeat_it_is_no_error(desk: Site, model: Player) -> None:
    path = f"/api/approvals/{(await asked(desk, model))['approvals'][0]['id']}"

    replies = [await desk.ask("POST", path, json={"decision": decision}) for decision in ("deny", "deny", "approve")]

    assert [reply.status for reply in replies] == [200, 200, 409]
    assert replies[2].code == "conflict"
    assert (await desk.ask("POST", path, json={"decision": "perhaps"})).code == "invalid_input"


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_only_the_user_and_who_administers_the_tenant_decide(desk: Site, model: Player) -> None:
    ann, bob = [await make_key(desk.engine, name, scopes=["read", "write"]) for name in ("ann", "bob")]
    eve, admin = await make_key(desk.engine, "ann", tenant="acme"), await make_key(desk.engine, "root")
    approval = (await asked(desk, model, ann))["approvals"][0]

    for key in (bob, eve):
        for method, body in [("GET", None), ("POST", {"decision": "approve"})]:
            reply = await desk.ask(method, f"/api/approvals/{approval['id']}", key=key, json=body)
            unknown = await desk.ask(method, f"/api/approvals/{uuid4()}", key=key, json=body)
            assert (reply.status, reply.code) == (unknown.status, unknown.code) == (404, "not_found")
        assert (await desk.ask("GET", "/api/approvals", key=key)).json()["approvals"] == []
    assert (await desk.ask("GET", "/api/approvals?user=ann", key=bob)).status == 403
    for key in (ann, admin):
        assert (await desk.ask("GET", "/api/approvals", key=key)).json()["approvals"] == [approval]
    decided = await desk.ask("POST", f"/api/approvals/{approval['id']}", key=admin, json={"decision": "approve"})
    assert decided.json()["decided_by"] == "root"


@pytest.mark.req("SAFE-03", "AGENT-05")
async def test_an_agent_does_not_decide_what_a_person_has_to_whoever_s_key_it_holds(desk: Site, model: Player) -> None:
    ann = await make_key(desk.engine, "ann", scopes=["read", "write"])
    approval = (await asked(desk, model, ann))["approvals"][0]
    tenant = await desk.engine.tenants.id_of("default")
    agent = await desk.engine.keys.create(tenant, "ann", scopes=frozenset({"read", "write"}), agent="support")
    path = f"/api/approvals/{approval['id']}"

    reply = await desk.ask("POST", path, key=agent.text, json={"decision": "approve"})

    assert (reply.status, reply.code) == (403, "forbidden")
    assert (await desk.ask("GET", path, key=ann)).json()["state"] == "pending"
