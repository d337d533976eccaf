import asyncio
import json
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.server.app import OPERATIONS
from holdfast.server.operations import ApiOperation
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

USER = ["read", "write"]
HOSTILE = "nul\0 half \ud83d, whole 😀 and \U0010fffe0000"

# One request for each operation on a conversation or a node; none of them is wrong in itself.
BODIES: dict[str, Any] = {
    "append_node": {"content": "x"},
    "append_nodes": {"nodes": [{"content": "x"}]},
    "edit_node": {"content": "x", "version": 1},
    "move_node": {"version": 1, "parent": str(uuid4())},
    "fork_conversation": {},
    "change_state": {"state": {"step": 1}},
    "claim_turn": {},
    "renew_turn": {},
}
QUERIES = {"delete_node": "?version=1", "delete_state": "?key=step"}
ON_ONE = [operation for operation in OPERATIONS if operation.path.startswith(("/api/conversations/{", "/api/nodes/{"))]


@pytest.fixture
async def anns(engine: Engine) -> str:
    """A key of the user ann, who administers nothing."""
    return await make_key(engine, "ann", scopes=USER)


@pytest.fixture
async def bobs(engine: Engine) -> str:
    """A key of the user bob, who administers nothing."""
    return await make_key(engine, "bob", scopes=USER)


async def create(site: Site, key: str, **wanted: Any) -> dict[str, Any]:
    """A conversation that was made over HTTP."""
    reply = await site.ask("POST", "/api/conversations", key=key, json=wanted)
    assert reply.status == 201, reply
    return reply.json()


async def say(site: Site, key: str, talk: dict[str, Any], content: str, **wanted: Any) -> dict[str, Any]:
    """A node that was appended over HTTP."""
    path = f"/api/conversations/{talk['id']}/nodes"
    reply = await site.ask("POST", path, key=key, json={"content": content, **wanted})
    assert reply.status == 201, reply
    return reply.json()


async def ask_for(site: Site, operation: ApiOperation, id: object, **request: Any) -> Reply:
    """The answer to the operation's request on one conversation or node."""
    path = operation.path.replace("{id}", str(id)).replace("{number}", "1") + QUERIES.get(operation.name, "")
    return await site.ask(operation.method, path, json=BODIES.get(operation.name), **request)


def told(reply: Reply, id: object) -> dict[str, Any]:
    """All that a refusal says, but for what differs between any two."""
    said = json.loads(reply.body.replace(str(id).encode(), b"ID"))
    return {**said, "request_id": ""}


@pytest.mark.req("CONV-01", "CONV-09")
async def test_a_conversation_is_made_found_listed_and_removed(site: Site, engine: Engine, anns: str) -> None:
    made = await create(site, anns, app="shop", agent="support", session_id="web 42/ä", state={"step": 1})

    by_id = await site.ask("GET", f"/api/conversations/{made['id']}", key=anns)
    by_session = await site.ask("GET", f"/api/conversations/by-session?session_id={quote('web 42/ä')}", key=anns)
    listed = await site.ask("GET", "/api/conversations?app=shop&agent=support&user=ann", key=anns)
    elsewhere = await site.ask("GET", "/api/conversations?app=blog", key=anns)
    removed = await site.ask("DELETE", f"/api/conversations/{made['id']}", key=anns)

    assert (made["app"], made["user"], made["agent"], made["session_id"]) == ("shop", "ann", "support", "web 42/ä")
    assert by_id.json() == by_session.json() == made
    assert listed.json() == {"conversations": [made], "cursor": None, "openings": {}}
    assert elsewhere.json() == {"conversations": [], "cursor": None, "openings": {}}
    assert (removed.status, removed.body) == (204, b"")
    assert await engine.conversations.find(session_id="web 42/ä") is None


@pytest.mark.req("CONV-03")
async def test_a_list_goes_on_where_its_cursor_stands(site: Site, anns: str) -> None:
    made = [(await create(site, anns))["id"] for _ in range(5)]
    seen: list[str] = []

    cursor: str | None = ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = (await site.ask("GET", f"/api/conversations?limit=2{more}", key=anns)).json()
        seen += [talk["id"] for talk in page["conversations"]]
        cursor = page["cursor"]

    assert seen == made[::-1]


@pytest.mark.req("UI-01", "STM-05")
async def test_a_list_tells_what_a_user_said_first_where_it_is_asked_for(site: Site, anns: str, bobs: str) -> None:
    silent, greeted, hostile, others = [await create(site, key, state={"step": 1}) for key in (anns, anns, anns, bobs)]
    await say(site, anns, greeted, "How can I help?", context="text:agent:support")
    await say(site, anns, greeted, " ")
    await say(site, anns, greeted, "Where is my parcel? " * 20)
    await say(site, anns, greeted, "Hello?")
    gone = await say(site, anns, hostile, "never mind")
    await say(site, anns, hostile, HOSTILE * 99)
    await site.ask("DELETE", f"/api/nodes/{gone['id']}?version=1", key=anns)
    await say(site, bobs, others, "My secret")

    listed = (await site.ask("GET", "/api/conversations?openings=true", key=anns)).json()
    second = (await site.ask("GET", "/api/conversations?openings=true&limit=1", key=anns)).json()
    spoken = [
        (await site.ask("GET", f"/api/conversations?spoken=true{of}", key=key)).json()["conversations"]
        for of, key in (("", anns), ("&user=ann", site.file.token))
    ]

    assert [talk["id"] for talk in listed["conversations"]] == [hostile["id"], greeted["id"], silent["id"]]
    assert listed["openings"] == {
        greeted["id"]: ("Where is my parcel? " * 20)[:200],
        hostile["id"]: (HOSTILE * 99)[:200],
    }
    assert list(second["openings"]) == [hostile["id"]]
    assert [[talk["id"] for talk in each] for each in spoken] == [[hostile["id"], greeted["id"]]] * 2


@pytest.mark.req("CONV-03")
async def test_a_search_finds_what_was_said(site: Site, anns: str, bobs: str) -> None:
    talk = await create(site, anns, app="shop")
    node = await say(site, anns, talk, "Where is my PARCEL?")
    await say(site, bobs, await create(site, bobs), "parcel, too")

    found = await site.ask("GET", "/api/conversations/search?text=parcel", key=anns)
    elsewhere = await site.ask("GET", "/api/conversations/search?text=parcel&app=blog", key=anns)
    for_nothing = await site.ask("GET", "/api/conversations/search?text=%20", key=anns)

    assert [hit["node"]["id"] for hit in found.json()["found"]] == [node["id"]]
    assert found.json()["found"][0]["conversation"]["id"] == talk["id"]
    assert elsewhere.json() == {"found": [], "cursor": None}
    assert (for_nothing.status, for_nothing.code) == (400, "invalid_input")


@pytest.mark.req("STM-05", "SAFE-02")
@pytest.mark.parametrize("operation", ON_ONE, ids=lambda operation: operation.name)
@pytest.mark.parametrize("stranger", ["another user", "an admin who acts as another", "another tenant"])
async def test_what_is_another_s_is_answered_as_what_does_not_exist(
    site: Site, engine: Engine, anns: str, operation: ApiOperation, stranger: str
) -> None:
    talk = await create(site, anns, state={"step": 0})
    node = await say(site, anns, talk, "secret")
    before = [line async for line in engine.conversations.export(talk["id"])]
    unknown, foreign = uuid7(), node["id"] if "/nodes/{" in operation.path else talk["id"]
    caller: dict[str, Any] = {"key": await make_key(engine, "bob", scopes=USER)}
    if stranger == "an admin who acts as another":
        caller = {"key": site.file.token, "headers": {"Holdfast-User": "bob"}}
    elif stranger == "another tenant":
        await engine.tenants.create("acme")
        caller = {"key": await make_key(engine, "ann", tenant="acme")}

    refused = await ask_for(site, operation, foreign, **caller)
    missing = await ask_for(site, operation, unknown, **caller)

    assert (refused.status, refused.code) == (404, "not_found")
    assert told(refused, foreign) == told(missing, unknown)
    assert refused.headers.keys() == missing.headers.keys()
    assert [line async for line in engine.conversations.export(talk["id"])] == before


@pytest.mark.req("STM-05")
async def test_a_session_and_a_list_tell_nothing_of_other_users(site: Site, anns: str, bobs: str) -> None:
    talk = await create(site, anns, session_id="web-1")
    await say(site, anns, talk, "secret")
    by_session = "/api/conversations/by-session?session_id="

    foreign, unknown = [await site.ask("GET", f"{by_session}{id}", key=bobs) for id in ("web-1", "web-2")]
    listed = await site.ask("GET", "/api/conversations", key=bobs)
    searched = await site.ask("GET", "/api/conversations/search?text=secret", key=bobs)
    asked_for = [await site.ask("GET", f"/api/conversations?user={user}", key=bobs) for user in ("ann", "nobody")]

    assert (foreign.status, told(foreign, "web-1")) == (404, told(unknown, "web-2"))
    assert (listed.json()["conversations"], searched.json()["found"]) == ([], [])
    assert [(reply.status, reply.code) for reply in asked_for] == [(403, "forbidden")] * 2


@pytest.mark.req("STM-05")
async def test_an_admin_reaches_every_user_s_unless_acting_as_one(site: Site, key: str, anns: str, bobs: str) -> None:
    talks = [await create(site, key) for key in (anns, bobs)]
    as_bob = {"Holdfast-User": "bob"}

    listed = await site.ask("GET", "/api/conversations", key=key)
    of_bob = await site.ask("GET", "/api/conversations?user=bob", key=key)
    acting = await site.ask("GET", "/api/conversations", key=site.file.token, headers=as_bob)
    beyond = await site.ask("GET", "/api/conversations?user=ann", key=site.file.token, headers=as_bob)
    read = await site.ask("GET", f"/api/conversations/{talks[1]['id']}", key=key)

    assert listed.json()["conversations"] == talks[::-1]
    assert of_bob.json()["conversations"] == acting.json()["conversations"] == [talks[1]]
    assert (beyond.status, read.json()) == (403, talks[1])


@pytest.mark.req("STM-05")
async def test_a_user_who_goes_by_the_id_of_their_name_is_the_same_user(site: Site, engine: Engine, anns: str) -> None:
    talk = await create(site, anns)
    by_id = await make_key(engine, str(await engine.identities.find_id("user", "ann")), scopes=USER)

    listed = await site.ask("GET", "/api/conversations", key=by_id)
    read = await site.ask("GET", f"/api/conversations/{talk['id']}", key=by_id)

    assert (listed.json()["conversations"], read.json()) == ([talk], talk)


@pytest.mark.req("CONV-01")
async def test_documents_are_listed_apart(site: Site, anns: str) -> None:
    talk, page = await create(site, anns), await create(site, anns, document=True)

    talks = await site.ask("GET", "/api/conversations", key=anns)
    pages = await site.ask("GET", "/api/conversations?document=true", key=anns)

    assert (talks.json()["conversations"], pages.json()["conversations"]) == ([talk], [page])
    assert (page["kind"], page["session_id"]) == ("document", None)


@pytest.mark.req("STM-05")
@pytest.mark.parametrize("user", ["bob", None])
async def test_only_an_admin_makes_conversations_for_others(
    site: Site, key: str, anns: str, bobs: str, user: str | None
) -> None:
    refused = await site.ask("POST", "/api/conversations", key=anns, json={"user": user})
    made = await create(site, key, user=user)

    assert (refused.status, refused.code) == (403, "forbidden")
    assert made["user"] == user
    statuses = [(await site.ask("GET", f"/api/conversations/{made['id']}", key=key)).status for key in (anns, bobs)]
    assert statuses == [404, 404 if user is None else 200]


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("operation", [op for op in ON_ONE if op.method != "GET"], ids=lambda operation: operation.name)
async def test_a_key_that_only_reads_changes_nothing(
    site: Site, engine: Engine, anns: str, operation: ApiOperation
) -> None:
    talk = await create(site, anns)
    node = await say(site, anns, talk, "hello")
    reader = await make_key(engine, "ann", scopes=["read"])

    refused = await ask_for(site, operation, node["id"] if "/nodes/{" in operation.path else talk["id"], key=reader)

    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await engine.conversations.get(talk["id"])).revision == 1


@pytest.mark.req("CONV-08")
async def test_a_fork_has_the_nodes_up_to_its_place(site: Site, anns: str) -> None:
    talk = await create(site, anns)
    for content in ("one", "two", "three"):
        await say(site, anns, talk, content)
    path = f"/api/conversations/{talk['id']}/fork"

    fork = await site.ask("POST", path, key=anns, json={"at": 2, "session_id": "copy"})
    whole = await site.ask("POST", path, key=anns)
    taken = await site.ask("POST", path, key=anns, json={"session_id": "copy"})
    beyond = await site.ask("POST", path, key=anns, json={"at": 4})

    nodes = (await site.ask("GET", f"/api/conversations/{fork.json()['id']}/nodes", key=anns)).json()["nodes"]
    assert (fork.status, fork.json()["forked_from"], fork.json()["session_id"]) == (201, talk["id"], "copy")
    assert [node["content"] for node in nodes] == ["one", "two"]
    assert whole.json()["last_seq"] == 3
    assert (taken.status, taken.code, beyond.status) == (409, "already_exists", 404)


@pytest.mark.req("CONV-04", "ENG-08")
async def test_an_export_is_lines_of_plain_json_with_all_that_was(site: Site, anns: str) -> None:
    talk = await create(site, anns)
    node = await say(site, anns, talk, HOSTILE, payload={"own": HOSTILE})
    await site.ask("PATCH", f"/api/nodes/{node['id']}", key=anns, json={"content": "edited", "version": 1})

    exported = await site.ask("GET", f"/api/conversations/{talk['id']}/export", key=anns)

    lines = [json.loads(line) for line in exported.body.splitlines()]
    assert exported.headers["content-type"] == "application/x-ndjson"
    assert lines[0]["conversation"]["id"] == talk["id"]
    assert [line["node"]["seq"] for line in lines[1:]] == [0, 1]
    assert lines[2]["node"]["content"] == "edited"
    assert lines[2]["former"][0]["content"] == HOSTILE
    assert lines[2]["former"][0]["payload"] == {"own": HOSTILE}


@pytest.mark.req("CONV-08")
async def test_an_export_is_sent_while_it_is_read(site: Site, engine: Engine, anns: str) -> None:
    talk = await create(site, anns)
    for _ in range(3):
        await say(site, anns, talk, "x" * 4_000_000)

    async with site.connect() as wire, asyncio.timeout(10):
        head = f"GET /api/conversations/{talk['id']}/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {anns}"
        await wire.send(f"{head}\r\n\r\n".encode())
        answer = await wire.reply_without_body()

    assert (answer.status, answer.headers["transfer-encoding"]) == (200, "chunked")
    assert "content-length" not in answer.headers
    assert (await site.ask("GET", "/api/me", key=anns)).status == 200


@pytest.mark.req("CONV-05")
async def test_messages_are_what_a_model_is_given(site: Site, anns: str) -> None:
    talk = await create(site, anns, agent="support")
    call = {"id": "1", "name": "track", "arguments": {"parcel": 7}}
    await say(site, anns, talk, "Where is it?")
    await say(site, anns, talk, "", context="text:agent:support", payload={"tool_calls": [call]})
    await say(site, anns, talk, "on its way", context="text:agent:tool", payload={"tool_call_id": "1"})
    path = f"/api/conversations/{talk['id']}/messages"

    plain = await site.ask("GET", path, key=anns)
    with_tools = await site.ask("GET", f"{path}?reader=support&tools=true", key=anns)
    last = await site.ask("GET", f"{path}?reader=other&limit=1", key=anns)

    assert plain.json() == {"messages": [{"role": "user", "content": "Where is it?\n\non its way"}]}
    assert [message["role"] for message in with_tools.json()["messages"]] == ["user", "assistant", "tool"]
    assert with_tools.json()["messages"][1]["tool_calls"] == [call]
    assert last.json() == {"messages": [{"role": "user", "content": "on its way"}]}


@pytest.mark.req("CONV-03")
async def test_state_is_changed_key_by_key_with_versions(site: Site, anns: str) -> None:
    talk = await create(site, anns, state={"step": 1, "gone": True})
    path = f"/api/conversations/{talk['id']}/state"

    change = {"state": {"step": 2, "user:theme": "dark", "temp:x": 1}, "delete": ["gone"], "expect": {"step": 1}}
    changed = await site.ask("PATCH", path, key=anns, json=change)
    stale = await site.ask("PATCH", path, key=anns, json={"state": {"step": 9}, "expect": {"step": 1}})
    deleted = await site.ask("DELETE", f"{path}?key=user:theme", key=anns)
    read = await site.ask("GET", path, key=anns)

    theme = {"value": "dark", "version": 1}
    assert changed.json() == {"state": {"step": {"value": 2, "version": 2}, "user:theme": theme}}
    assert (stale.status, stale.code) == (409, "conflict")
    assert stale.json()["details"] == {"expected": 1, "current": 2, "key": "step"}
    assert (deleted.status, read.json()) == (204, {"state": {"step": {"value": 2, "version": 2}}})


@pytest.mark.req("UI-01", "CONV-08")
async def test_every_change_of_state_is_told_page_by_page_with_the_node_it_came_at(site: Site, anns: str) -> None:
    talk = await create(site, anns, state={"step": 1})
    path = f"/api/conversations/{talk['id']}/state"
    await say(site, anns, talk, "Hello", state={HOSTILE: [HOSTILE]}, delete_state=["step"])
    await site.ask("PATCH", path, key=anns, json={"state": {"user:theme": "dark", "temp:x": 1}})
    await say(site, anns, talk, "And now?")
    await site.ask("PATCH", path, key=anns, json={"state": {"step": None}})

    whole = (await site.ask("GET", f"{path}/changes", key=anns)).json()
    first = (await site.ask("GET", f"{path}/changes?limit=3", key=anns)).json()
    rest = (await site.ask("GET", f"{path}/changes?limit=3&since={first['next']}", key=anns)).json()
    wrong = await site.ask("GET", f"{path}/changes?since=x", key=anns)

    told = [(each["seq"], each["revision"], each["set"], each["deleted"]) for each in whole["changes"]]
    assert told == [
        (0, 0, {"step": 1}, []),
        (1, 1, {HOSTILE: [HOSTILE]}, ["step"]),
        (1, 2, {"user:theme": "dark"}, []),
        (2, 4, {"step": None}, []),
    ]
    assert [each["at"] for each in whole["changes"]] == sorted(each["at"] for each in whole["changes"])
    assert (first["changes"] + rest["changes"], first["next"], rest["next"]) == (whole["changes"], 2, None)
    assert whole["next"] is None
    assert (wrong.status, wrong.code) == (400, "invalid_input")


@pytest.mark.req("ENG-08")
async def test_hostile_text_comes_back_from_state_as_it_went_in(site: Site, anns: str) -> None:
    talk = await create(site, anns)
    path = f"/api/conversations/{talk['id']}/state"

    await site.ask("PATCH", path, key=anns, json={"state": {HOSTILE: [HOSTILE]}, "expect": {HOSTILE: 0}})
    read = await site.ask("GET", path, key=anns)

    assert read.json() == {"state": {HOSTILE: {"value": [HOSTILE], "version": 1}}}


@pytest.mark.req("CONV-07")
async def test_a_turn_is_claimed_queued_for_renewed_and_released(site: Site, anns: str) -> None:
    talk = await create(site, anns)
    path = f"/api/conversations/{talk['id']}/turns"

    first = await site.ask("POST", path, key=anns)
    rejected = await site.ask("POST", path, key=anns, json={"busy": "reject"})
    second = await site.ask("POST", path, key=anns, json={"busy": "interrupt", "lease_seconds": 60, "holder": "two"})
    told = await site.ask("PUT", f"{path}/{first.json()['number']}", key=anns, json={"lease_seconds": 5})
    released = await site.ask("DELETE", f"{path}/{first.json()['number']}", key=anns)
    held = await site.ask("PUT", f"{path}/{second.json()['number']}", key=anns)
    lapsed = await site.ask("PUT", f"{path}/{first.json()['number']}", key=anns)

    assert (first.status, first.json()["held"], first.json()["conversation"]) == (201, True, talk["id"])
    assert (rejected.status, rejected.code, rejected.json()["details"]["holder"]) == (409, "busy", "ann")
    assert (second.status, second.json()["held"]) == (201, False)
    assert (told.json()["interrupted"], released.status, held.json()["held"]) == (True, 204, True)
    assert (lapsed.status, lapsed.code) == (409, "busy")


@pytest.mark.req("CONV-07")
async def test_a_turn_that_may_fork_works_on_a_copy_and_an_ended_one_appends_nothing(site: Site, anns: str) -> None:
    talk = await create(site, anns)
    path = f"/api/conversations/{talk['id']}"
    turn = (await site.ask("POST", f"{path}/turns", key=anns)).json()["number"]

    forked = await site.ask("POST", f"{path}/turns", key=anns, json={"busy": "fork"})
    await say(site, anns, talk, "in time", turn=turn)
    await site.ask("DELETE", f"{path}/turns/{turn}", key=anns)
    late = await site.ask("POST", f"{path}/nodes", key=anns, json={"content": "late", "turn": turn})

    copy = await site.ask("GET", f"/api/conversations/{forked.json()['conversation']}", key=anns)
    assert (forked.json()["held"], copy.json()["forked_from"]) == (True, talk["id"])
    assert (late.status, late.code) == (409, "busy")


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", "", {"app": ""}, "app"),
        ("POST", "", {"app": "x" * 2001}, "limit is 2000"),
        ("POST", "", {"session_id": "é" * 1001}, "limit is 2000"),
        ("POST", "", {"colour": "red"}, "colour"),
        ("POST", "", {"half \ud83d": "red"}, "lone surrogate"),
        ("POST", "", {"state": {"x" * 1001: 1}}, "1000 bytes"),
        ("GET", "?limit=0", None, "limit"),
        ("GET", "?limit=1001", None, "limit"),
        ("GET", "?limit=many", None, "limit"),
        ("GET", "?cursor=", None, "cursor"),
        ("GET", "?cursor=%00", None, "cursor"),
        ("GET", f"?cursor={'A' * 60}", None, "cursor"),
        ("GET", "/search", None, "text"),
        ("GET", "/search?text=x&cursor=x", None, "cursor"),
        ("GET", f"/search?text=x&cursor={'f' * 60}", None, "cursor"),
        ("GET", "/by-session", None, "session_id"),
        ("GET", "/web-42", None, "id"),
        ("GET", "/{id}/messages?limit=0", None, "limit"),
        ("GET", "/{id}/messages?tools=perhaps", None, "tools"),
        ("POST", "/{id}/fork", {"at": -1}, "at"),
        ("POST", "/{id}/fork", {"at": 2**64}, "at"),
        ("PATCH", "/{id}/state", {"expect": {"step": -1}}, "expect"),
        ("PATCH", "/{id}/state", {"state": {"step": 1}, "expect": {"step": 2**63}}, "expect"),
        ("PATCH", "/{id}/state", {"state": []}, "state"),
        ("DELETE", "/{id}/state", None, "key"),
        ("POST", "/{id}/turns", {"busy": "hope"}, "busy"),
        ("POST", "/{id}/turns", {"busy": "half \ud83d"}, "lone surrogate"),
        ("POST", "/{id}/turns", {"lease_seconds": 0}, "lease_seconds"),
        ("POST", "/{id}/turns", {"lease_seconds": 3601}, "lease_seconds"),
        ("PUT", "/{id}/turns/x", {}, "number"),
    ],
)
async def test_what_cannot_be_used_is_a_clear_problem(
    site: Site, anns: str, method: str, path: str, body: Any, said: str
) -> None:
    talk = await create(site, anns)

    reply = await site.ask(method, "/api/conversations" + path.replace("{id}", talk["id"]), key=anns, json=body)

    assert (reply.status in (400, 413), reply.code in ("invalid_input", "too_large")) == (True, True), reply
    assert said in reply.json()["detail"]
    after = await site.ask("GET", f"/api/conversations/{talk['id']}", key=anns)
    assert after.json() == talk


@pytest.mark.req("ENG-08")
async def test_the_state_of_a_user_needs_a_user(site: Site, key: str) -> None:
    talk = await create(site, key, user=None)

    reply = await site.ask(
        "PATCH", f"/api/conversations/{talk['id']}/state", key=key, json={"state": {"user:theme": "dark"}}
    )

    assert (reply.status, reply.code) == (400, "invalid_input")
    assert "it has no user" in reply.json()["why"]
