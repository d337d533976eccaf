"""Retention of the audit: months are made ahead and dropped as a whole, and the chain verifies from a checkpoint."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.audit.chain import AuditLink
from holdfast.audit.entries import AuditEntry
from holdfast.audit.retention import AuditMonths, tend_audit
from holdfast.audit.sealer import seal_all
from holdfast.core.audit_settings import AuditSettings
from holdfast.core.errors import Unavailable
from holdfast.engine import Engine
from tests.clock import Clock

pytestmark = pytest.mark.req("MCP-07", "SAFE-07")

SETTINGS = AuditSettings(retention_days=60)
MONTHS = """
select relname from pg_inherits join pg_class on pg_class.oid = inhrelid
where inhparent = any(array['public.audit', 'public.audit_person']::regclass[]) and relname !~ 'other' order by relname
"""

OLD = """
insert into audit_open (tenant_id, id, at, entry)
select id, gen_random_uuid(), '2031-04-11', '{"action":"tool.call","target":"waits since April","outcome":"done"}'
from tenant where name = 'default'
"""


async def tended(engine: Engine) -> AuditMonths:
    """Tend the audit, as the owner."""
    async with engine.postgres.owner() as owner:
        return await tend_audit(owner, SETTINGS)


async def record(engine: Engine, count: int) -> None:
    """Record so many calls, and seal them."""
    for number in range(count):
        await engine.audit.record(AuditEntry(action="tool.call", target=str(number), user="ann"))
    await seal_all(engine.database)


@pytest.fixture
async def started(engine: Engine, clock: Clock) -> Engine:
    """An audit in March, with ten entries, and then one in April with five."""
    await clock.set(datetime(2031, 3, 10, tzinfo=UTC))
    await tended(engine)
    await record(engine, 10)
    await clock.set(datetime(2031, 4, 10, tzinfo=UTC))
    await tended(engine)
    await record(engine, 5)
    return engine


async def months(engine: Engine) -> list[str]:
    """The months that there are."""
    async with engine.postgres.owner() as owner:
        found = [row["relname"] for row in await owner.all(MONTHS)]
    return [name for name in found if "2031" in name]


async def test_months_are_made_ahead(engine: Engine, clock: Clock) -> None:
    await clock.set(datetime(2031, 11, 30, 23, 59, tzinfo=UTC))

    first, second = await tended(engine), await tended(engine)

    assert (first.made, second.made) == (3, 0)
    assert await months(engine) == ["audit_203111", "audit_203112", "audit_person_203111", "audit_person_203112"]


async def test_a_month_past_retention_is_dropped_and_the_chain_begins_at_a_checkpoint(
    started: Engine, clock: Clock
) -> None:
    await clock.set(datetime(2031, 6, 15, tzinfo=UTC))

    report = await tended(started)
    found = await started.audit.verify()

    assert report.dropped == 1
    assert "audit_203103" not in await months(started)
    assert (found.fault, found.progress.verified, found.end) == (None, 6, 16)
    assert found.progress.checkpoint.startswith("10:")
    assert [each.action for each in await started.audit.list()] == ["audit.retention", *["tool.call"] * 5]


async def test_nothing_is_dropped_before_its_whole_month_is_past_retention(started: Engine, clock: Clock) -> None:
    await clock.set(datetime(2031, 5, 29, tzinfo=UTC))

    assert (await tended(started)).dropped == 0


async def test_an_entry_that_is_not_sealed_is_never_dropped(started: Engine, clock: Clock) -> None:
    await clock.set(datetime(2032, 6, 15, tzinfo=UTC))
    async with started.postgres.owner() as owner:
        await owner.script(OLD)

    report = await tended(started)
    found = await started.audit.verify()

    assert (report.dropped, found.fault) == (4, None)  # March to June, of which two were ahead
    assert [each.target for each in await started.audit.list(action="tool.call")] == ["waits since April"]


async def test_entries_without_a_month_are_dropped_in_time_too(engine: Engine, clock: Clock) -> None:
    await clock.set(datetime(2040, 3, 10, tzinfo=UTC))
    await record(engine, 3)
    await clock.set(datetime(2040, 6, 15, tzinfo=UTC))

    await tended(engine)
    found = await engine.audit.verify()

    assert (found.fault, found.progress.checkpoint[:2], found.progress.verified) == (None, "3:", 1)


async def test_the_first_months_are_there_when_the_schema_is(engine: Engine) -> None:
    await record(engine, 3)

    async with engine.postgres.owner() as owner:
        assert await owner.value("select count(*) from audit_other") == 0
        assert await owner.value("select count(*) from audit_person_other") == 0


async def test_a_month_with_entries_in_the_partition_for_all_others_is_not_tried_again(
    engine: Engine, clock: Clock
) -> None:
    await clock.set(datetime(2040, 3, 10, tzinfo=UTC))
    await record(engine, 3)
    await tended(engine)

    async with engine.postgres.owner() as sealer, sealer.transaction():
        await sealer.script("lock table audit_other in row exclusive mode")
        again = await tended(engine)

    assert again == AuditMonths(0, 0, 0)


async def test_entries_that_somebody_removed_are_not_taken_for_dropped_ones(started: Engine, clock: Clock) -> None:
    async with started.postgres.owner() as owner:
        await owner.script("delete from audit where seq <= 4; delete from audit_person where seq <= 4")
        await owner.script(
            "update audit_chain set checkpoint_seq = 4, checkpoint_hash = (select previous from audit where seq = 5)"
        )

    found = await started.audit.verify()

    assert found.fault is not None
    assert (found.fault.kind, found.fault.seq) == ("missing", 4)
    assert found.fault.what == "the entries up to 4 are missing, and not by retention"


async def test_an_exported_file_says_where_its_chain_begins(started: Engine, clock: Clock) -> None:
    await clock.set(datetime(2031, 6, 15, tzinfo=UTC) + timedelta(days=1))
    await tended(started)

    header = await anext(started.audit.export())

    assert '"seq":10' in header


async def test_a_month_that_is_dropped_while_the_chain_is_verified_is_no_fault(
    started: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await clock.set(datetime(2031, 6, 15, tzinfo=UTC))
    monkeypatch.setattr("holdfast.audit.audit.READ_TOGETHER", 4)
    links, parts = started.audit._links, 0  # pyright: ignore[reportPrivateUsage]

    async def dropped_before_the_second_part(after: int, limit: int) -> Sequence[AuditLink]:
        nonlocal parts
        parts += 1
        if parts == 2:
            await tended(started)
        return await links(after, limit)

    monkeypatch.setattr(started.audit, "_links", dropped_before_the_second_part)
    found = await started.audit.verify()

    assert (found.fault, found.complete, found.progress.verified) == (None, True, 6)


async def test_a_month_that_is_dropped_while_the_audit_is_exported_ends_the_export(
    started: Engine, clock: Clock
) -> None:
    await clock.set(datetime(2031, 6, 15, tzinfo=UTC))
    exporting = started.audit.export()
    await anext(exporting)
    await tended(started)

    with pytest.raises(Unavailable, match="retention dropped entries meanwhile"):
        await anext(exporting)
