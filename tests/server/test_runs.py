from uuid import UUID, uuid4

import pytest

from holdfast.server import pages
from tests.agents.stage import Player, calls, reached
from tests.server.chatting import held, say
from tests.server.conftest import make_key
from tests.server.wire import Site


@pytest.mark.req("AGENT-02", "AGENT-04")
async def test_a_run_shows_what_was_sent_and_why_what_came_back_and_which_tools_ran(desk: Site, model: Player) -> None:
    model.says(calls(("track", {"parcel": "AB-1"})), "In Cologne.")
    told = (await say(desk, "Where is AB-1?")).json()

    story = (await desk.ask("GET", f"/api/runs/{told['run_id']}")).json()

    assert (story["run"]["state"], story["run"]["answer"]) == ("done", told["node_id"])
    assert [step["reply"]["text"] for step in story["steps"]] == ["", "In Cologne."]
    assert all(part["reason"] for step in story["steps"] for part in step["sent"]["parts"])
    assert "You help." in str(story["steps"][0]["sent"])
    (execution,) = story["executions"]
    assert (execution["tool"], execution["status"], execution["output"]["text"]) == (
        "track", "done", "AB-1 is in Cologne",
    )  # fmt: skip


@pytest.mark.req("AGENT-02", "SAFE-03")
async def test_what_an_agent_is_told_by_who_runs_it_is_shown_to_an_admin_alone(desk: Site) -> None:
    ann = await make_key(desk.engine, "ann", scopes=["read", "write"])
    admin = await make_key(desk.engine, "root")
    told = (await say(desk, "Who are you?", key=ann)).json()

    hers = (await desk.ask("GET", f"/api/runs/{told['run_id']}", key=ann)).json()
    whole = (await desk.ask("GET", f"/api/runs/{told['run_id']}", key=admin)).json()

    system, *others = hers["steps"][0]["sent"]["messages"]
    assert "You help." in str(whole)
    assert "You help." not in str(hers)
    assert (system["role"], system["content"]) == ("system", None)
    assert others == whole["steps"][0]["sent"]["messages"][1:]
    assert hers["steps"][0]["sent"]["parts"] == whole["steps"][0]["sent"]["parts"]


@pytest.mark.req("AGENT-04")
async def test_runs_are_listed_page_by_page_by_conversation_and_by_user(desk: Site) -> None:
    ann = await make_key(desk.engine, "ann", scopes=["read", "write"])
    admin = await make_key(desk.engine, "root")
    first = [(await say(desk, "Hello", key=ann, session_id="web-1")).json() for _ in range(3)]
    second = (await say(desk, "Hello", key=admin)).json()

    page = (await desk.ask("GET", "/api/runs?limit=2", key=ann)).json()
    rest = (await desk.ask("GET", f"/api/runs?limit=2&cursor={page['cursor']}", key=ann)).json()
    everyone = (await desk.ask("GET", "/api/runs", key=admin)).json()
    one = (await desk.ask("GET", f"/api/runs?conversation={second['conversation_id']}", key=admin)).json()

    assert [run["id"] for run in page["runs"] + rest["runs"]] == [each["run_id"] for each in reversed(first)]
    assert rest["cursor"] is None
    assert [run["id"] for run in everyone["runs"]] == [second["run_id"], *(each["run_id"] for each in reversed(first))]
    assert [run["id"] for run in one["runs"]] == [second["run_id"]]


@pytest.mark.req("UI-01", "AGENT-04", "SAFE-03")
async def test_runs_are_listed_by_their_state_beside_whose_they_are(desk: Site, model: Player) -> None:
    ann, bob = [await make_key(desk.engine, name, scopes=["read", "write"]) for name in ("ann", "bob")]
    admin, eve = await make_key(desk.engine, "root"), await make_key(desk.engine, "ann", tenant="acme")
    refusal = {"fail": {"status": 400, "message": "no such model"}}
    model.says(refusal, refusal, "Hello.", refusal)
    failed = [(await say(desk, "Hello", key=ann, session_id="web-1")).json()["details"] for _ in range(2)]
    done = (await say(desk, "Hello", key=ann, session_id="web-1")).json()
    bobs = (await say(desk, "Hello", key=bob)).json()["details"]

    async def listed(asked: str, key: str) -> list[str]:
        return [run["id"] for run in (await desk.ask("GET", f"/api/runs?{asked}", key=key)).json()["runs"]]

    first, second = [each["run_id"] for each in failed]
    page = (await desk.ask("GET", "/api/runs?state=failed&limit=1", key=ann)).json()
    assert [run["id"] for run in page["runs"]] == [second]
    assert await listed(f"state=failed&limit=1&cursor={page['cursor']}", ann) == [first]
    assert await listed("state=failed", admin) == [bobs["run_id"], second, first]
    assert await listed("state=failed&user=ann", admin) == [second, first]
    assert await listed(f"state=failed&conversation={done['conversation_id']}", admin) == [second, first]
    assert await listed("state=done&user=ann", admin) == await listed("state=done", admin) == [done["run_id"]]
    assert await listed("state=waiting", admin) == await listed("state=failed", eve) == []
    assert (await desk.ask("GET", "/api/runs?state=lost", key=ann)).code == "invalid_input"
    assert (await desk.ask("GET", "/api/runs?state=failed&cursor=x", key=ann)).code == "invalid_input"


@pytest.mark.req("AGENT-01")
async def test_a_run_is_cancelled_and_tried_again(desk: Site, model: Player) -> None:
    asked = held(model)
    sent = await desk.engine.agents.send("support", "Hello", user="local", session_id="web-1")
    await asked.wait()

    cancelled = await desk.ask("POST", f"/api/runs/{sent.run_id}/cancel")
    await reached(desk.engine, sent.run_id, "cancelled")
    model.release()
    again = await desk.ask("POST", f"/api/runs/{sent.run_id}/retry")
    done = await reached(desk.engine, UUID(again.json()["id"]), "done", "failed")
    twice = await desk.ask("POST", f"/api/runs/{sent.run_id}/retry")

    assert (cancelled.status, again.status) == (200, 201)
    assert (done.state, again.json()["retry_of"]) == ("done", str(sent.run_id))
    assert (twice.status, twice.code) == (400, "invalid_input")


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_runs_of_others_are_unknown(desk: Site, model: Player) -> None:
    ann, bob = [await make_key(desk.engine, name, scopes=["read", "write"]) for name in ("ann", "bob")]
    eve = await make_key(desk.engine, "ann", tenant="acme")
    told = (await say(desk, "My secret", key=ann)).json()
    id, conversation = told["run_id"], told["conversation_id"]

    for key in (bob, eve):
        for method, path in [("GET", ""), ("POST", "/cancel"), ("POST", "/retry")]:
            reply = await desk.ask(method, f"/api/runs/{id}{path}", key=key)
            unknown = await desk.ask(method, f"/api/runs/{uuid4()}{path}", key=key)
            assert (reply.status, reply.code) == (unknown.status, unknown.code) == (404, "not_found")
        assert (await desk.ask("GET", f"/api/runs?conversation={conversation}", key=key)).status == 404
        assert (await desk.ask("GET", "/api/runs", key=key)).json()["runs"] == []
    assert (await desk.ask("GET", "/api/runs?user=ann", key=bob)).status == 403
    assert (await desk.ask("GET", f"/api/runs/{id}", key=ann)).status == 200
    assert len(model.requests) == 1


@pytest.mark.req("SAFE-06")
async def test_a_run_is_told_a_page_of_steps_at_a_time(
    desk: Site, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.says(calls(("track", {"parcel": "AB-1"})), calls(("track", {"parcel": "AB-2"})), "In Cologne.")
    told = (await say(desk, "Where are they?")).json()
    path = f"/api/runs/{told['run_id']}"
    whole = (await desk.ask("GET", path)).json()
    monkeypatch.setattr(pages, "MAX_PAGE_BYTES", 1)
    monkeypatch.setattr(pages, "FIRST", 1)

    stories, cursor = [(await desk.ask("GET", path)).json()], 1
    while stories[-1]["cursor"] is not None:
        assert stories[-1]["cursor"] == cursor
        stories.append((await desk.ask("GET", f"{path}?since={cursor}")).json())
        cursor += 1

    assert whole["cursor"] is None
    assert len(stories) == len(whole["steps"]) > 2
    for part in ("steps", "executions", "asked"):
        assert [each for story in stories for each in story[part]] == whole[part]
