"""Access rules and explanations over HTTP."""

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-07")

LARGE = 'large: deny tool "refund" when amount > 100 because "A person pays more than 100."'


async def test_rules_are_put_added_shown_and_removed_with_their_comments(site: Site) -> None:
    empty = await site.ask("GET", "/api/gateway/rules")
    put = await site.ask("PUT", "/api/gateway/rules", json={"text": f"# Money.\n{LARGE}\n", "version": 0})
    added = await site.ask("POST", "/api/gateway/rules", json={"rules": 'mine: dry-run deny user "ann"'})
    stale = await site.ask("PUT", "/api/gateway/rules", json={"text": "", "version": 1})
    shown = await site.ask("GET", "/api/gateway/rules/large")
    removed = await site.ask("DELETE", "/api/gateway/rules/large")
    gone = await site.ask("GET", "/api/gateway/rules/large")
    left = await site.ask("GET", "/api/gateway/rules")

    assert (empty.json()["version"], empty.json()["rules"], empty.json()["default"]) == (0, [], "allow")
    assert put.json()["warnings"] == ["the rule large names the tool 'refund', which does not exist"]
    assert [(each["name"], each["on_trial"], each["line"]) for each in added.json()["rules"]] == [
        ("large", False, 2), ("mine", True, 3),
    ]  # fmt: skip
    assert (stale.status, stale.code) == (409, "conflict")
    assert (shown.json()["text"], shown.json()["because"]) == (LARGE, "A person pays more than 100.")
    assert (removed.status, gone.status) == (204, 404)
    assert left.json()["text"] == '# Money.\nmine: dry-run deny user "ann"\n'


async def test_invalid_rules_are_refused_with_line_and_column(site: Site) -> None:
    put = await site.ask("PUT", "/api/gateway/rules", json={"text": 'a: deny\nb: deny team "x"'})
    tried = await site.ask("POST", "/api/gateway/rule-tests", json={"text": "nonsense"})
    unknown = await site.ask("PUT", "/api/gateway/rules", json={"text": "", "force": True})

    assert (put.status, put.code) == (400, "invalid_input")
    assert "line 2, column 9: `team` is not known here" in put.body.decode()
    assert (tried.status, unknown.status) == (400, 400)


async def test_a_direct_call_that_a_rule_denies_gets_403_with_the_name_of_the_rule(desk: Site) -> None:
    await desk.ask("PUT", "/api/gateway/rules", json={"text": 'no: deny tool "track" when parcel like "X*"'})

    refused = await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "X-1"}})
    allowed = await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "A-1"}})

    assert (refused.status, refused.code, refused.json()["details"]["rule"]) == (403, "forbidden", "no")
    assert allowed.json()["status"] == "done"


async def test_tools_that_rules_deny_are_in_no_list_and_no_search_of_the_api(desk: Site, engine: Engine) -> None:
    await desk.ask("PUT", "/api/gateway/rules", json={"text": 'no: deny user "bob" tool "track"'})
    bob = await make_key(engine, "bob", scopes=["read", "write"])
    cy = await make_key(engine, "cy", scopes=["read", "write"])

    listed: list[set[str]] = []
    for key in (bob, cy, None):
        for path in ("/api/tools", "/api/tools?query=where+is+a+parcel", "/api/tools?source=none"):
            tools = (await desk.ask("GET", path, key=key)).json()["tools"]
            listed.append({each["name"] for each in tools} & {"track"})
    shown = await desk.ask("GET", "/api/tools/track", key=bob)
    called = await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "1"}}, key=bob)
    missing = await desk.ask("GET", "/api/tools/trakc", key=bob)

    assert listed == [set(), set(), set(), {"track"}, {"track"}, set(), {"track"}, {"track"}, set()]
    assert [reply.status for reply in (shown, called)] == [404, 404]
    assert (shown.code, shown.json()["what"]) == (missing.code, missing.json()["what"].replace("trakc", "track"))


async def test_what_rules_on_trial_would_refuse_is_a_metric(desk: Site) -> None:
    await desk.ask("PUT", "/api/gateway/rules", json={"text": 'try: dry-run deny tool "track"'})
    await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "X-1"}})

    shown = await desk.ask("GET", "/api/gateway/rules/try")
    metrics = await desk.ask("GET", "/metrics")

    assert shown.json()["trial"]["calls"] == 1
    assert shown.json()["trial"]["examples"][0]["arguments"] == ["parcel"]
    assert 'holdfast_rule_trials_total{rule="try",tenant="default"} 1.0' in metrics.body.decode()


async def test_rules_can_name_the_scopes_and_the_key_of_a_direct_caller(desk: Site) -> None:
    me = (await desk.ask("GET", "/api/me")).json()
    await desk.ask("PUT", "/api/gateway/rules", json={"text": 'no: deny scope "admin" tool "track"'})
    by_scope = await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "A-1"}})
    await desk.ask("PUT", "/api/gateway/rules", json={"text": 'no: deny scope "operator" tool "track"'})
    by_other = await desk.ask("POST", "/api/tools/track/call", json={"arguments": {"parcel": "A-1"}})

    assert "admin" in me["scopes"]
    assert (by_scope.status, by_other.status) == (403, 200)


async def test_a_call_is_explained_to_its_caller_and_for_others_only_to_an_admin(desk: Site, engine: Engine) -> None:
    await desk.ask("PUT", "/api/gateway/rules", json={"text": 'no: deny user "bob" tool "track"'})
    member = await make_key(engine, "bob", scopes=["read", "write"])
    admin = await make_key(engine, "ann")

    mine = await desk.ask("POST", "/api/gateway/explain", json={"tool": "track"}, key=member)
    others = await desk.ask("POST", "/api/gateway/explain", json={"tool": "track", "user": "ann"}, key=member)
    of_bob = await desk.ask(
        "POST",
        "/api/gateway/explain",
        json={"tool": "track", "user": "bob", "scopes": ["admin", "read", "write"]},
        key=admin,
    )
    keys = (await desk.ask("GET", "/api/keys", key=admin)).json()["keys"]
    hers = next(each["id"] for each in keys if each["principal"] == "ann")
    of_key = await desk.ask(
        "POST", "/api/gateway/explain", key=admin,
        json={"tool": "track", "key": hers, "arguments": {"parcel": "1"}},
    )  # fmt: skip
    of_no_key = await desk.ask(
        "POST", "/api/gateway/explain", json={"tool": "track", "key": "00000000-0000-7000-8000-000000000000"}, key=admin
    )

    assert (mine.json()["verdict"], mine.json()["rules"]) == ("refused", [])
    assert (others.status, others.code) == (403, "forbidden")
    assert of_bob.json()["why"] == "the access rule no denies it, so that the tool looks missing"
    assert of_key.json()["verdict"] == "allowed"
    assert of_no_key.status == 404
