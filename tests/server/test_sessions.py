from urllib.parse import quote

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

ACTIVE = "/api/sessions/active?agent_id=support"
USER = ["read", "write"]

pytestmark = pytest.mark.req("STM-03")


async def activate(site: Site, session_id: str, key: str) -> None:
    assert (await site.ask("PUT", ACTIVE, key=key, json={"session_id": session_id})).status == 200


async def test_a_caller_finds_the_session_again_that_they_activated(site: Site, key: str) -> None:
    before = await site.ask("GET", ACTIVE, key=key)
    put = await site.ask("PUT", ACTIVE, key=key, json={"session_id": "web-42"})
    after = await site.ask("GET", ACTIVE, key=key)

    assert before.status == 200
    assert before.json() == {"agent_id": "support", "session_id": None, "last_active_at": None, "created_at": None}
    assert put.json() == after.json()
    assert (after.json()["agent_id"], after.json()["session_id"]) == ("support", "web-42")
    assert after.json()["last_active_at"] == after.json()["created_at"]


async def test_each_user_and_each_agent_has_a_session_of_its_own(site: Site, engine: Engine, key: str) -> None:
    await activate(site, "web-42", key)

    other_agent = await site.ask("GET", f"/api/sessions/active?agent_id={quote('größer & mehr')}", key=key)
    other_user = await site.ask("GET", ACTIVE, key=await make_key(engine, "bob", scopes=USER))

    assert other_agent.json()["agent_id"] == "größer & mehr"
    assert (other_agent.json()["session_id"], other_user.json()["session_id"]) == (None, None)


@pytest.mark.req("STM-04")
async def test_the_answer_is_the_session_in_force(site: Site, key: str) -> None:
    answers = [
        (await site.ask("PUT", ACTIVE, key=key, json=body)).json()["session_id"]
        for body in (
            {"session_id": "one", "instead_of": None},
            {"session_id": "two", "instead_of": None},
            {"session_id": "three", "instead_of": "one"},
            {"session_id": "four"},
        )
    ]

    assert answers == ["one", "one", "three", "four"]


@pytest.mark.req("SAFE-03")
async def test_a_user_ends_their_own_sessions_and_an_admin_any(site: Site, engine: Engine, key: str) -> None:
    anns = await make_key(engine, "ann", scopes=USER)
    bobs = await make_key(engine, "bob", scopes=USER)
    await activate(site, "web-1", anns)

    foreign = await site.ask("POST", "/api/sessions/end", key=bobs, json={"session_id": "web-1"})
    unknown = await site.ask("POST", "/api/sessions/end", key=bobs, json={"session_id": "web-2"})
    own = await site.ask("POST", "/api/sessions/end", key=anns, json={"session_id": "web-1"})
    await activate(site, "web-3", bobs)
    by_admin = await site.ask("POST", "/api/sessions/end", key=key, json={"session_id": "web-3"})

    assert (foreign.status, foreign.code, unknown.status) == (404, "not_found", 404)
    assert foreign.json()["detail"].replace("web-1", "web-2") == unknown.json()["detail"]
    assert (own.status, own.body, by_admin.status) == (204, b"", 204)
    assert (await site.ask("GET", ACTIVE, key=anns)).json()["session_id"] is None
    assert (await site.ask("GET", ACTIVE, key=bobs)).json()["session_id"] is None


@pytest.mark.req("SAFE-03")
async def test_a_key_that_only_reads_changes_no_session(site: Site, engine: Engine) -> None:
    reader = await make_key(engine, scopes=["read"])

    read = await site.ask("GET", ACTIVE, key=reader)
    put = await site.ask("PUT", ACTIVE, key=reader, json={"session_id": "one"})
    ended = await site.ask("POST", "/api/sessions/end", key=reader, json={"session_id": "one"})

    assert (read.status, put.status, ended.status) == (200, 403, 403)


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (ACTIVE, {"session_id": ""}, 400),
        (ACTIVE, {"session_id": None}, 400),
        (ACTIVE, {"session_id": "one", "instead_of": 1}, 400),
        (ACTIVE, {}, 400),
        (ACTIVE, {"session_id": "x" * 2001}, 413),
        ("/api/sessions/active", {"session_id": "one"}, 400),
        ("/api/sessions/active?agent_id=", {"session_id": "one"}, 400),
        (f"/api/sessions/active?agent_id={'x' * 2001}", {"session_id": "one"}, 413),
    ],
)
async def test_what_names_no_session_is_a_clear_problem(site: Site, path: str, body: object, status: int) -> None:
    reply = await site.ask("PUT", path, json=body)

    assert reply.status == status
    assert reply.code in ("invalid_input", "too_large")
    assert (await site.ask("GET", ACTIVE)).json()["session_id"] is None


async def test_a_session_may_have_any_characters(site: Site) -> None:
    put = await site.ask("PUT", ACTIVE, json={"session_id": "nul\0 half \ud83d"})

    assert put.json()["session_id"] == "nul\0 half \ud83d"
    assert (await site.ask("GET", ACTIVE)).json() == put.json()
