"""Access rules in force: what callers see, what is refused over every way to call a tool, and on which nodes."""

from time import monotonic
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import Broken, Conflict, Forbidden, InvalidInput, NotFound
from holdfast.core.ids import uuid7
from holdfast.engine import open_engine
from holdfast.gateway import inventory
from holdfast.gateway.gateway import Gateway
from holdfast.gateway.gateways import Gateways
from holdfast.skills.client import InputRequired
from holdfast.skills.rules import access_rules
from holdfast.skills.rules.grammar import parse_rules
from holdfast.skills.run import Run
from tests.gateway.shop import ADMIN, MEMBER, Person, ask, caller

pytestmark = pytest.mark.req("MCP-07")

STATIC = 'no-refunds: deny user "ann" tool "refund"'
LARGE = 'large: deny tool "refund" when amount > 100 because "A person pays more than 100."'


async def listed(gateway: Gateway, **who: Any) -> set[str]:
    """The tools that somebody sees."""
    return {each.name for each in (await gateway.tools(await caller(gateway, **who))).tools}


async def rule(gateway: Gateway, text: str) -> None:
    """Put rules in force, here and at once."""
    await gateway.engine.rules.put(text, by="ann")
    await gateway.inventory.current()


async def test_a_tool_that_a_rule_denies_is_in_no_list_and_looks_like_a_missing_tool(gateway: Gateway) -> None:
    ann, bob = await caller(gateway), await caller(gateway, "bob")

    await rule(gateway, STATIC)

    assert "refund" not in await listed(gateway)
    assert "refund" in await listed(gateway, user="bob")
    with pytest.raises(NotFound) as refused:
        await gateway.call(ann, "refund", {"order": "1"})
    with pytest.raises(NotFound) as missing:
        await gateway.call(ann, "refunt", {"order": "1"})
    assert str(refused.value).replace("refund", "") == str(missing.value).replace("refunt", "")
    assert (await gateway.call(bob, "refund", {"order": "1"})).status == "done"
    found = await gateway.call(ann, "search_tools", {"query": "give money back refund"})
    assert "refund" not in found.text
    assert "refund" in (await gateway.call(bob, "search_tools", {"query": "give money back refund"})).text


async def test_call_tool_leads_to_no_tool_that_a_rule_denies(gateway: Gateway) -> None:
    ann = await caller(gateway)
    await rule(gateway, f"{STATIC}\n{LARGE}")

    hidden = await gateway.call(ann, "call_tool", {"name": "refund", "arguments": {"order": "1"}})
    with pytest.raises(Forbidden, match="the access rule large denies it"):
        await gateway.call(
            await caller(gateway, "bob"), "call_tool", {"name": "refund", "arguments": {"order": "1", "amount": 101}}
        )

    assert (hidden.status, "there is no tool 'refund'" in hidden.text) == ("failed", True)


async def test_a_rule_about_arguments_refuses_the_call_with_its_name_and_its_reason(gateway: Gateway) -> None:
    ann = await caller(gateway)
    await rule(gateway, LARGE)

    shown = await ask(gateway, ann, "tools/call", {"name": "refund", "arguments": {"order": "1", "amount": 101}})

    assert shown["isError"]
    assert shown["content"][0]["text"] == (
        "refund was not called: the access rule large denies it. A person pays more than 100. "
        "Continue without it, or ask an admin about this rule."
    )
    assert (await gateway.call(ann, "refund", {"order": "1", "amount": 100})).status == "done"


async def test_rules_see_the_arguments_that_the_tool_gets_with_their_defaults(gateway: Gateway) -> None:
    ann = await caller(gateway)
    await rule(gateway, 'a: deny tool "refund" when amount = 1')

    with pytest.raises(Forbidden) as refused:
        await gateway.call(ann, "refund", {"order": "1"})

    assert refused.value.details["rule"] == "a"


async def test_the_engines_own_tools_can_be_ruled_too(gateway: Gateway) -> None:
    await rule(gateway, 'a: deny tool "remember"\nb: deny user "bob" kind "builtin"')

    assert "remember" not in await listed(gateway)
    assert "recall" in await listed(gateway)
    assert await listed(gateway, user="bob") & {"recall", "call_tool", "search_tools"} == set()


async def test_no_rule_keeps_an_admin_from_changing_the_rules(gateway: Gateway) -> None:
    await rule(gateway, "default deny\nall: deny")
    assert await listed(gateway) == set()

    await rule(gateway, "")

    assert "refund" in await listed(gateway)


async def test_with_default_deny_only_what_a_rule_allows_is_listed_and_can_be_called(gateway: Gateway) -> None:
    await rule(gateway, 'default deny\na: allow user "ann" tool "track"\nb: allow tool "refund" when amount < 10')
    ann = await caller(gateway)

    assert await listed(gateway) == {"track", "refund"}
    assert await listed(gateway, user="bob") == {"refund"}
    assert (await gateway.call(ann, "track", {"parcel": "1"})).status == "done"
    with pytest.raises(Forbidden, match="no access rule allows it"):
        await gateway.call(ann, "refund", {"order": "1", "amount": 10})


async def test_rules_never_widen_what_permissions_and_scopes_forbid(gateway: Gateway) -> None:
    before = await listed(gateway, user="bob", scopes=MEMBER)

    await rule(gateway, 'a: allow user "bob"\nb: allow')

    assert await listed(gateway, user="bob", scopes=MEMBER) == before
    assert "refund" not in before


async def test_an_agents_key_is_held_to_the_rules_for_the_agent_and_to_those_for_its_user(gateway: Gateway) -> None:
    await rule(gateway, 'a: deny agent "support" tool "track"\nb: deny user "bob" tool "refund"')

    assert await listed(gateway, agent="support", scopes=MEMBER) & {"track", "refund"} == {"refund"}
    assert await listed(gateway, user="bob", agent="support", scopes=MEMBER) & {"track", "refund"} == set()
    assert await listed(gateway, agent="clerk", scopes=MEMBER) & {"track", "refund"} == {"refund"}


async def test_a_user_who_goes_by_an_id_sees_what_the_user_by_name_sees(gateway: Gateway) -> None:
    id = str(await gateway.engine.identities.find_id("user", "ann"))

    await rule(gateway, STATIC)
    assert "refund" not in await listed(gateway, user=id)
    await rule(gateway, STATIC.replace('"ann"', f'"{id}"'))
    assert "refund" not in await listed(gateway, user="ann")
    await gateway.engine.identities.id("user", "ann")
    await rule(gateway, STATIC.replace('"ann"', '"an*"'))
    assert "refund" not in await listed(gateway, user=id)


async def test_views_are_kept_for_whom_rules_name_and_shared_by_all_others(gateway: Gateway) -> None:
    await rule(gateway, 'a: deny user "ann", "bob" tool "refund"\nb: deny tool "track"')

    views = [await gateway.tools(await caller(gateway, user)) for user in ("ann", "bob", "cy", "dan", "eve")]

    assert views[0] is views[1]
    assert views[2] is views[3] is views[4]
    assert len((await gateway.inventory.current()).views) == 2


async def test_a_rule_holds_for_direct_calls_and_for_calls_of_agents(gateway: Gateway) -> None:
    engine = gateway.engine
    await rule(gateway, f'{LARGE}\nno-track: deny tool "track"')
    track = (await engine.tools.get("track")).tool
    run = Run("ann", "support", None, None, uuid7(), "1", "k")

    with pytest.raises(Forbidden, match="the access rule large denies it"):
        await engine.executions.call("refund", {"order": "1", "amount": 500}, user="ann")
    with pytest.raises(Forbidden, match="the access rule no-track denies it"):
        await engine.executions.call("track", {"parcel": "1"}, user="ann")
    outcome = await engine.executor.run(track, {"parcel": "1"}, run, timeout=5, max_output_bytes=1000)

    assert outcome.status == "failed"
    assert "the access rule no-track denies it" in outcome.text


async def test_a_call_that_a_worker_already_has_is_not_decided_about_again(gateway: Gateway) -> None:
    from holdfast.execution.outcomes import Outcome
    from holdfast.execution.policies.access import AccessPolicy
    from holdfast.execution.policies.calls import ExecutorCall

    await rule(gateway, "all: deny")
    track = (await gateway.engine.tools.get("track")).tool
    run = Run("ann", None, None, None, None, "1", "k")

    async def proceed(_: ExecutorCall) -> Outcome:
        return Outcome("done", "went on", None, None, 0.0)

    outcome = await AccessPolicy(gateway.engine.rules).apply(ExecutorCall(track, {}, run, 1, 1, resumed=True), proceed)

    assert outcome.text == "went on"


async def test_a_change_is_in_force_on_another_node_within_a_second(
    gateway: Gateway, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    for module in (access_rules, inventory):
        monkeypatch.setattr(module, "monotonic", lambda: monotonic() + passed)
    async with open_engine(config=config) as other:
        there = Gateways(other).of(await other.database.tenant())
        assert "remember" in await listed(there)

        await gateway.engine.rules.put('a: deny tool "remember"\nb: deny tool "recall" when query = "x"', by="ann")
        passed += 1.0

        assert "remember" not in await listed(there)
        with pytest.raises(Forbidden, match="the access rule b denies it"):
            await there.call(await caller(there), "recall", {"query": "x"})


async def test_a_rule_on_trial_refuses_nothing_and_is_counted_with_examples_but_no_arguments(gateway: Gateway) -> None:
    await rule(gateway, 'try: dry-run deny tool "refund" when amount > 100\nhide: dry-run deny tool "track"')
    ann = await caller(gateway)

    assert "track" in await listed(gateway)
    for amount in (101, 102, 1):
        assert (await gateway.call(ann, "refund", {"order": "secret", "amount": amount})).status == "done"

    found = await gateway.engine.rules.trials()
    assert {name: each.calls for name, each in found.items()} == {"try": 2}
    assert [(each.tool, each.user, each.agent, each.arguments) for each in found["try"].examples] == 2 * [
        ("refund", "ann", None, ("order", "amount"))
    ]
    await rule(gateway, 'try: deny tool "refund" when amount > 100')
    assert await gateway.engine.rules.trials() == {}


async def test_a_call_that_its_client_repeats_with_answers_is_counted_once(gateway: Gateway) -> None:
    await rule(gateway, 'try: dry-run deny tool "ship"')
    ann = await caller(gateway)

    with pytest.raises(InputRequired):
        await gateway.call(ann, "ship", {"order": "1"}, client=Person())
    done = await gateway.call(ann, "ship", {"order": "1"}, client=Person(where={"city": "Bern"}))

    assert done.status == "done"
    assert (await gateway.engine.rules.trials())["try"].calls == 1


async def test_the_latest_examples_of_a_rule_on_trial_are_kept(gateway: Gateway) -> None:
    await rule(gateway, 'try: dry-run deny tool "refund"')

    for user in ("a", "b", "c", "d", "e", "f", "g"):
        await gateway.call(await caller(gateway, user), "refund", {"order": "1"})
        await gateway.engine.rules.trials()

    trial = (await gateway.engine.rules.trials())["try"]
    assert (trial.calls, [each.user for each in trial.examples]) == (7, ["g", "f", "e", "d", "c"])


async def test_rules_are_changed_by_version_and_invalid_ones_leave_all_as_it_is(gateway: Gateway) -> None:
    rules = gateway.engine.rules

    stored = await rules.put("# mine\n" + STATIC, version=0, by="ann")
    with pytest.raises(Conflict):
        await rules.put("", version=0, by="bob")
    with pytest.raises(InvalidInput, match="line 1, column"):
        await rules.put("nonsense", version=stored.version, by="bob")
    with pytest.raises(InvalidInput, match="the rule no-refunds exists already"):
        await rules.add(STATIC)
    await rules.add("more: deny")
    await rules.remove("no-refunds")
    with pytest.raises(NotFound):
        await rules.remove("no-refunds")

    assert (await rules.get()).text == "# mine\nmore: deny\n"
    assert (await rules.get()).version == 3


async def test_names_of_what_does_not_exist_are_warned_about(gateway: Gateway) -> None:
    text = 'a: deny agent "suport", "x*" tool "refund", "refnd", "run_code" source "shop" user "whoever"'

    warnings = await gateway.engine.rules.warnings(parse_rules(text))

    assert warnings == [
        f"the rule a names the {part} {name!r}, which does not exist"
        for part, name in (("agent", "suport"), ("source", "shop"), ("tool", "refnd"))
    ]


@pytest.mark.parametrize("page", [1, 100])
async def test_rules_are_tested_on_the_calls_that_were_made(
    gateway: Gateway, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_rules, "PAGE", page)
    engine, ann = gateway.engine, await caller(gateway)
    for amount in (5, 500):
        await engine.executions.call("refund", {"order": "1", "amount": amount}, user="ann")
    await gateway.call(ann, "track", {"parcel": "1"})

    count, changed = await engine.rules.test(parse_rules(LARGE), calls=100)
    few, _ = await engine.rules.test(parse_rules(LARGE), calls=1)

    assert count >= 2
    assert few == 1
    assert [(each.tool, each.user, each.allowed, each.rule) for each in changed] == [("refund", "ann", False, "large")]
    assert (await engine.rules.get()).version == 0


async def test_rules_of_one_tenant_mean_nothing_to_another(gateway: Gateway, gateways: Gateways) -> None:
    await gateway.engine.tenants.create("acme")
    acme = gateways.of(await gateway.engine.tenants.id_of("acme"))

    await rule(gateway, "default deny")

    assert await listed(gateway) == set()
    assert "recall" in await listed(acme)
    assert (await acme.engine.rules.get()).text == ""


async def test_calls_fail_closed_when_the_stored_rules_cannot_be_read(gateway: Gateway) -> None:
    engine = gateway.engine
    await rule(gateway, "a: allow")
    await engine.database.run("update access_rules set text = 'broken', version = 7 where tenant_id = $1")

    with pytest.raises(Broken, match="no tool can be called"):
        await engine.rules.read()

    await rule(gateway, "")
    assert (await gateway.call(await caller(gateway), "track", {"parcel": "1"})).status == "done"


async def test_list_and_call_agree_for_everybody_and_every_tool(gateway: Gateway) -> None:
    await rule(
        gateway,
        """
        a: deny user "ann" tool "re*"
        b: deny agent "support" except "x" tool "track"
        c: deny scope "admin" tool "picture"
        d: deny access "read" user "bob"
        """.replace("\n        ", "\n"),
    )
    names = ("track", "refund", "picture", "Refund", "refund ", "re*", "recall", "search_tools")
    given: dict[str, Any] = {"parcel": "1", "order": "1", "query": "x"}

    for user in ("ann", "bob", "cy"):
        for agent, scopes in ((None, ADMIN), (None, MEMBER), ("support", MEMBER)):
            who = await caller(gateway, user, agent=agent, scopes=scopes)
            seen = {each.name for each in (await gateway.tools(who)).tools}
            for name in names:
                wanted = {"track": "parcel", "recall": "query", "search_tools": "query"}.get(name, "order")
                called = True
                try:
                    await gateway.call(who, name, {wanted: given[wanted]})
                except NotFound:
                    called = False
                assert called == (name in seen), (user, agent, name)
