"""The audit of a tenant: what is recorded is found, kept apart from other tenants, and can be erased for a person."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from holdfast.audit.audit import Audit
from holdfast.audit.entries import AuditEntry, json_of, outcome_of_error, row_of, rule_of
from holdfast.audit.sealer import AuditSealer, seal_all, seal_some
from holdfast.audit.writer import AuditWriter
from holdfast.core.errors import DatabaseAway, Forbidden, HoldfastError, InvalidInput, Unavailable
from holdfast.core.request_context import RequestContext, set_request
from holdfast.engine import Engine
from holdfast.postgres.database import Database
from tests.logins import tenant_login

pytestmark = pytest.mark.req("MCP-07", "SAFE-07")

SECRET = "a street in Cologne"


def entry(target: str = "track", user: str | None = "ann", **more: object) -> AuditEntry:
    """A call of a tool."""
    return AuditEntry(action="tool.call", target=target, user=user, **more)  # pyright: ignore[reportArgumentType]


async def test_an_entry_has_who_what_when_and_the_request_it_belongs_to(engine: Engine) -> None:
    set_request(RequestContext("mcp", "request-1", "a" * 32, "192.0.2.7"))

    await engine.audit.record(
        entry(actor="backend", agent="support", outcome="refused", code="forbidden", rule="no-refunds", bytes_in=12)
    )

    (found,) = await engine.audit.list()
    assert (found.action, found.target, found.outcome, found.code, found.rule) == (
        "tool.call", "track", "refused", "forbidden", "no-refunds",
    )  # fmt: skip
    assert (found.user, found.actor, found.agent, found.bytes_in) == ("ann", "backend", "support", 12)
    assert (found.via, found.request_id, found.trace_id, found.address) == ("mcp", "request-1", "a" * 32, "192.0.2.7")
    assert found.at <= await engine.database.now()


async def test_entries_are_found_by_user_action_outcome_target_and_time(engine: Engine) -> None:
    for each in (entry("a"), entry("b", "bob"), entry("a", "bob", outcome="failed")):
        await engine.audit.record(each)
    await engine.audit.record(AuditEntry(action="create_key", user="ann"))
    later = await engine.database.now() + timedelta(hours=1)

    async def seqs(**filters: object) -> list[int]:
        return [found.seq for found in await engine.audit.list(**filters)]  # pyright: ignore[reportArgumentType]

    assert await seqs() == [4, 3, 2, 1]
    assert await seqs(user="bob") == [3, 2]
    assert await seqs(action="create_key") == [4]
    assert await seqs(outcome="failed") == [3]
    assert await seqs(target="a") == [3, 1]
    assert await seqs(user="bob", target="a") == [3]
    assert await seqs(since=later) == []
    assert await seqs(before=3) == [2, 1]


async def test_pages_go_on_where_the_last_one_ended(engine: Engine) -> None:
    for number in range(5):
        await engine.audit.record(entry(str(number)))

    first = await engine.audit.list(limit=3)
    second = await engine.audit.list(limit=3, before=int(first.cursor or 0))

    assert [found.target for found in (*first, *second)] == ["4", "3", "2", "1", "0"]
    assert second.cursor is None


async def test_whoever_follows_the_audit_misses_no_entry(engine: Engine) -> None:
    await engine.audit.record(entry("before"))
    _, after = await engine.audit.follow()

    await asyncio.gather(*(engine.audit.record(entry(str(number))) for number in range(25)))
    seen: list[str] = []
    while len(seen) < 25:
        entries, after = await engine.audit.follow(after, limit=10)
        seen += [found.target for found in entries]

    assert sorted(seen, key=int) == [str(number) for number in range(25)]
    assert await engine.audit.follow(after, user="nobody") == ([], 26)


async def test_an_entry_that_is_sealed_while_the_audit_is_followed_is_returned_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, after = await engine.audit.follow()
    ends = engine.audit._ends  # pyright: ignore[reportPrivateUsage]

    async def sealed_after(*_: object) -> object:
        found = await ends()
        await engine.audit.record(entry("late"))
        await seal_all(engine.database)
        return found

    with monkeypatch.context() as busy:
        busy.setattr(engine.audit, "_ends", sealed_after)
        first, after = await engine.audit.follow(after)
    second, _ = await engine.audit.follow(after)

    assert ([found.target for found in first], [*second]) == (["late"], [])


async def test_an_entry_of_a_transaction_is_there_when_the_transaction_is(engine: Engine) -> None:
    async with engine.transaction() as tx:
        await engine.audit.record(entry("committed"), tx=tx)

    async def roll_back() -> None:
        async with engine.transaction() as tx:
            await engine.audit.record(entry("rolled back"), tx=tx)
            raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        await roll_back()

    assert [found.target for found in await engine.audit.list()] == ["committed"]


@pytest.mark.req("SAFE-02")
async def test_a_tenant_has_an_audit_of_its_own(engine: Engine) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme")
    await asyncio.gather(engine.audit.record(entry("ours")), acme.audit.record(entry("theirs")))

    ours, theirs = await engine.audit.list(), await acme.audit.list()
    erased = await acme.audit.erase(user="ann")

    assert ([found.target for found in ours], [found.target for found in theirs]) == (["ours"], ["theirs"])
    assert (erased, (await engine.audit.list())[0].user) == (1, "ann")
    assert (await engine.audit.verify()).fault is (await acme.audit.verify()).fault is None


@pytest.mark.parametrize(
    "statement",
    [
        "delete from audit where tenant_id = $1",
        "update audit set seq = 2 where tenant_id = $1",
        "delete from audit_person where tenant_id = $1",
        "update audit_chain set seq = 0 where tenant_id = $1",
        "delete from audit_open where tenant_id = $1",
        "update audit_open set entry = '{}' where tenant_id = $1",
        "select holdfast.seal_audit(gen_random_uuid(), $2) where $1::uuid is not null",
        "select holdfast.erase_audit(gen_random_uuid(), $2::int::text) where $1::uuid is not null",
    ],
)
@pytest.mark.req("SAFE-02")
async def test_the_role_of_the_application_can_add_entries_and_change_none(engine: Engine, statement: str) -> None:
    await engine.audit.record(entry())
    await seal_all(engine.database)
    args = (5,) if "$2" in statement else ()

    with pytest.raises(HoldfastError) as refused:
        await engine.database.run(statement, *args)

    assert refused.value.details["sqlstate"] == "42501"


async def test_two_sealers_at_once_do_not_fork_the_chain(engine: Engine) -> None:
    await asyncio.gather(*(engine.audit.record(entry(str(number))) for number in range(300)))

    sealed = await asyncio.gather(*(seal_some(engine.database) for _ in range(8)))

    assert sum(sealed) == 300
    found = await engine.audit.verify()
    assert (found.fault, found.progress.verified) == (None, 300)


async def test_entries_of_all_tenants_are_sealed_though_the_process_that_added_them_is_gone(engine: Engine) -> None:
    await engine.tenants.create("acme")
    for each in (engine, engine.tenant("acme")):
        await each.database.run(
            "insert into audit_open (tenant_id, id, entry) values ($1, gen_random_uuid(), $2)",
            '{"action":"tool.call","target":"","outcome":"done"}',
        )

    await AuditSealer(engine.postgres).step()

    async with engine.postgres.owner() as owner:
        assert await owner.value("select count(*) from audit_open") == 0
        assert await owner.value("select count(*) from audit") == 2


async def test_the_chain_verifies_after_a_person_was_erased(engine: Engine) -> None:
    for number in range(6):
        await engine.audit.record(entry(str(number), "ann" if number % 2 else "bob", details={"to": SECRET}))
    await engine.audit.record(entry("for another", "bob", actor="ann"))

    erased = await engine.audit.erase(user="ann", by="root")
    found = await engine.audit.verify()

    assert (erased, found.fault, found.progress.erased) == (4, None, 4)
    assert await engine.audit.list(user="ann") == []
    assert [each.target for each in await engine.audit.list() if each.erased] == ["for another", "5", "3", "1"]
    assert [each.target for each in await engine.audit.list(user="bob")] == ["4", "2", "0"]


async def test_the_limit_of_one_user_is_erased_with_the_user(engine: Engine) -> None:
    await engine.audit.record(entry(user="Ann Unusual", outcome="refused", rule='user "Ann Unusual": requests per day'))
    (before,) = await engine.audit.list()

    await engine.audit.erase(user="Ann Unusual")

    _, after = await engine.audit.list()
    assert (before.rule, after.rule) == ('user "Ann Unusual": requests per day', "")
    async with engine.postgres.owner() as owner:
        assert "Unusual" not in await owner.value("select string_agg(a::text, '') from audit a")
    assert (await engine.audit.verify()).fault is None


async def test_an_erasure_is_recorded_without_the_name(engine: Engine) -> None:
    await engine.audit.record(entry(user="Ann Unusual", details={"to": SECRET}))

    await engine.audit.erase(user="Ann Unusual", by="root")

    (found, _) = await engine.audit.list()
    assert (found.action, found.user, found.count) == ("audit.erase", "root", 1)
    async with engine.postgres.owner() as owner:
        text = await owner.value(
            "select string_agg(t, '') from (select a::text from audit a union all select p::text from audit_person p "
            "union all select o::text from audit_open o) as all_of_it (t)"
        )
    assert "Unusual" not in text
    assert SECRET not in text


def test_equal_arguments_have_the_same_json_in_whatever_order_they_were_sent() -> None:
    assert json_of({"a": 1, "b": {"d": 1, "c": 2}}) == json_of({"b": {"c": 2, "d": 1}, "a": 1})


@pytest.mark.parametrize("arguments", [{"a": "\ud800"}, {"a": float("nan")}, {"a": "\0"}, {"a": {1, 2}}, {"a": b"x"}])
def test_every_argument_has_a_hash(arguments: dict[str, object]) -> None:
    assert json_of(arguments)


async def test_whatever_a_name_or_a_detail_contains_is_stored(engine: Engine) -> None:
    odd = "nul \0 half \ud800 long " + "x" * 10_000

    await engine.audit.record(
        AuditEntry(
            action="tool.call", target=odd, user=odd, actor=odd, notes=(odd,) * 100, rule=odd, details={"odd": odd}
        )
    )

    (found,) = await engine.audit.list()
    assert (found.user, found.target) == (odd[:255], odd[:500])
    assert [each.target for each in await engine.audit.list(user=odd)] == [odd[:500]]
    assert (await engine.audit.verify()).fault is None


async def test_what_is_too_large_to_keep_is_left_out(engine: Engine) -> None:
    await engine.audit.record(entry(arguments={"text": "x" * 100_000}))

    (found,) = await engine.audit.list()
    assert (found.arguments, found.details) == (None, {"left_out": "arguments and details: too large"})


def test_the_same_arguments_have_another_hash_each_time_so_that_nobody_can_guess_them() -> None:
    one, other = (row_of(entry(arguments_json=b"{}"), RequestContext()) for _ in range(2))

    assert one.person != other.person
    assert b"ann" not in one.entry.encode()


@pytest.mark.parametrize(
    ("error", "outcome", "rule"),
    [
        (Forbidden("no", rule="night"), ("refused", "forbidden"), "night"),
        (Unavailable("away"), ("failed", "unavailable"), ""),
        (KeyError("inner"), ("failed", "failed"), ""),
    ],
)
def test_an_error_says_whether_something_was_refused_or_has_failed(
    error: Exception, outcome: tuple[str, str], rule: str
) -> None:
    assert outcome_of_error(error) == outcome
    assert rule_of(error) == rule


class Away(Database):
    """A database that can be away."""

    away = False
    asked = 0

    async def _call(self, method: str, statement: str, args: tuple[object, ...], *, lead: bool = True) -> object:
        self.asked += 1
        if self.away:
            raise DatabaseAway("the database does not respond")
        return await super()._call(method, statement, args, lead=lead)


@pytest.fixture
async def flaky(engine: Engine) -> Away:
    """The engine's database, which can be away."""
    database = engine.postgres.tenant(await engine.database.tenant())
    database.__class__ = Away
    assert isinstance(database, Away)
    return database


async def test_nothing_is_done_while_the_audit_cannot_be_written(flaky: Away, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.audit.writer.PROBE", 0.0)
    audit = Audit(flaky, AuditWriter(flaky, lambda: None))
    await audit.check()
    flaky.away = True

    await audit.check()  # nobody knows yet
    with pytest.raises(Unavailable, match="It may have taken effect"):
        await audit.record(entry())
    with pytest.raises(Unavailable, match="nothing is done without it"):
        await audit.check()
    flaky.away = False
    await audit.check()
    await audit.record(entry())

    assert len(await audit.list()) == 1


async def test_nothing_is_done_while_the_database_refuses_entries_and_answers_everything_else(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.audit.writer.PROBE", 0.0)
    async with engine.postgres.owner() as owner:
        await owner.script("revoke insert on audit_open from holdfast_app")
        with pytest.raises(Unavailable, match="It may have taken effect"):
            await engine.audit.record(entry("lost"))

        for _ in range(2):
            with pytest.raises(Unavailable, match="nothing is done without it"):
                await engine.audit.check()

        await owner.script("grant insert on audit_open to holdfast_app")
    await engine.audit.check()
    await engine.audit.record(entry("next"))

    assert [found.target for found in await engine.audit.list()] == ["next"]


async def test_callers_are_refused_at_once_while_one_of_them_tries_a_database_that_hangs(
    flaky: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = Audit(flaky, AuditWriter(flaky, lambda: None))
    flaky.away = True
    with pytest.raises(Unavailable):
        await audit.record(entry())
    tries = asyncio.Event()

    async def hang(*_: object) -> None:
        tries.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("holdfast.audit.writer.PROBE", 0.0)
    monkeypatch.setattr(flaky, "run", hang)
    first = asyncio.create_task(audit.check())
    async with asyncio.timeout(5):
        await tries.wait()
        with pytest.raises(Unavailable, match="nothing is done without it"):
            await audit.check()

    first.cancel()
    await asyncio.wait([first])


async def test_a_check_of_an_audit_that_works_asks_the_database_nothing(flaky: Away) -> None:
    audit = Audit(flaky, AuditWriter(flaky, lambda: None))

    for _ in range(10):
        await audit.check()

    assert flaky.asked == 0


async def test_many_callers_share_a_commit(flaky: Away) -> None:
    audit = Audit(flaky, AuditWriter(flaky, lambda: None))

    await asyncio.gather(*(audit.record(entry(str(number))) for number in range(100)))

    assert flaky.asked <= 3
    assert len(await audit.list(limit=200)) == 100


async def test_a_caller_who_is_gone_has_an_entry_nevertheless(engine: Engine) -> None:
    recording = asyncio.create_task(engine.audit.record(entry("gone")))
    await asyncio.sleep(0)
    recording.cancel()
    await asyncio.wait([recording])

    await engine.audit.record(entry("next"))

    assert [found.target for found in await engine.audit.list()] == ["next", "gone"]


@pytest.mark.req("SAFE-02")
async def test_work_that_fails_or_is_cancelled_is_recorded_with_its_outcome(engine: Engine) -> None:
    began = asyncio.Event()

    async def waits() -> None:
        began.set()
        await asyncio.Event().wait()

    async def breaks() -> None:
        raise OSError("no space left")

    async def is_done() -> str:
        return "42"

    waiting = asyncio.create_task(engine.audit.recorded(lambda: entry("waits"), waits))
    await began.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    with pytest.raises(OSError, match="no space left"):
        await engine.audit.recorded(lambda: entry("breaks"), breaks)

    assert await engine.audit.recorded(lambda: entry("is done"), is_done) == "42"
    found = {each.target: each.outcome for each in await engine.audit.list()}
    assert found == {"waits": "cancelled", "breaks": "failed", "is done": "done"}


async def test_the_login_of_a_tenant_reads_its_own_audit_and_writes_none(engine: Engine) -> None:
    await engine.audit.record(entry("theirs"))
    await seal_all(engine.database)
    default = await engine.database.tenant()

    async with tenant_login(engine, "acme") as login:
        await login.engine.audit.record(entry("ours"))
        await seal_all(login.engine.database)
        own = await login.engine.database.tenant()
        connection = login.at_hand()

        def rows(statement: str) -> list[tuple[object, ...]]:
            connection.rollback()
            connection.execute(f"set holdfast.tenant = '{default}'".encode())
            return connection.execute(statement.encode()).fetchall()

        assert rows("select target from audit") == [("ours",)]
        for table in ("audit_person", "audit_chain"):
            assert rows(f"select distinct tenant_id from {table}") == [(own,)]
        for statement in (
            f"insert into audit_open (tenant_id, id, entry) values ('{own}', gen_random_uuid(), '{{}}') returning 1",
            "update audit set seq = 9 returning 1",
            "delete from audit_person returning 1",
            "update audit_chain set seq = 0 returning 1",
            f"select holdfast.seal_audit('{own}', 1)",
            f"select holdfast.erase_audit('{own}', 'ann')",
            f"select holdfast.probe_audit('{own}')",
            "select holdfast.tend_audit(1, '1 day')",
            "select holdfast.checkpoint_audit(now()::timestamp)",
            "select 1 from audit_other",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                rows(statement)
