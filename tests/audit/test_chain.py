"""The chain of an audit: whatever is changed, removed or inserted afterwards is found, with its place."""

import asyncio
import re
from collections.abc import Callable

import pytest

from holdfast.audit.audit import Verification, sql
from holdfast.audit.chain import Fault
from holdfast.audit.entries import AuditEntry
from holdfast.audit.export_file import verify_lines
from holdfast.audit.sealer import seal_all
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine

pytestmark = pytest.mark.req("MCP-07", "SAFE-07")

COUNT = 30


async def record(engine: Engine, count: int = COUNT) -> None:
    """Record so many calls of Ann, and seal them."""
    for number in range(count):
        await engine.audit.record(AuditEntry(action="tool.call", target=f"tool-{number}", user="ann"))
    await seal_all(engine.database)


async def tamper(engine: Engine, *statements: str) -> None:
    """Change the chain as the owner of the database could."""
    async with engine.postgres.owner() as owner, owner.transaction():
        for statement in statements:
            await owner.script(statement)


async def fault_of(engine: Engine) -> Fault:
    """What a verification finds."""
    fault = (await engine.audit.verify()).fault
    assert fault is not None
    return fault


@pytest.fixture
async def recorded(engine: Engine) -> Engine:
    """An engine with a chain."""
    await record(engine)
    return engine


async def test_a_chain_that_nobody_touched_verifies_from_its_beginning_to_its_end(recorded: Engine) -> None:
    found = await recorded.audit.verify()

    assert (found.fault, found.complete, found.end, found.progress.verified) == (None, True, COUNT, COUNT)


async def test_an_empty_chain_verifies(engine: Engine) -> None:
    found = await engine.audit.verify()

    assert (found.fault, found.complete, found.end) == (None, True, 0)


async def test_a_chain_is_verified_in_parts_and_tells_how_far_it_is(recorded: Engine) -> None:
    first = await recorded.audit.verify_some(limit=20)
    second = await recorded.audit.verify_some(first.progress, limit=20)
    last = await recorded.audit.verify_some(second.progress, limit=20)

    assert [part.progress.seq for part in (first, second, last)] == [20, COUNT, COUNT]
    assert [part.complete for part in (first, second, last)] == [False, True, True]
    assert last.fault is None


CHANGES = {
    "the text of an entry": "update audit set entry = replace(entry::text, 'tool-6', 'tool-x')::json where seq = 7",
    "the time of an entry": "update audit set at = at - interval '1 hour' where seq = 7",
    "when it was sealed": "update audit set sealed_at = sealed_at + interval '1 us' where seq = 7",
    "its id": "update audit set id = gen_random_uuid() where seq = 7",
    "its link": "update audit set previous = sha256('x') where seq = 7",
    "its hash": "update audit set hash = sha256('x') where seq = 7",
    "who it was": "update audit_person set person = replace(person::text, 'ann', 'bob')::json where seq = 7",
    "when its person was sealed": "update audit_person set sealed_at = sealed_at - interval '1 us' where seq = 7",
    "personal data beside its own": """
        insert into audit_person (tenant_id, seq, sealed_at, salt, person)
        select tenant_id, seq, sealed_at + interval '1 us', salt, person from audit_person where seq = 7
    """,
    "the salt": "update audit_person set salt = decode(repeat('00', 16), 'hex') where seq = 7",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_entry_is_found_with_its_place(recorded: Engine, change: str) -> None:
    await tamper(recorded, CHANGES[change])

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("changed", 7)


async def test_an_entry_that_was_changed_together_with_its_hash_is_found(recorded: Engine) -> None:
    await tamper(recorded, REWRITE.format(seq=7))

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("changed", 7)


async def test_the_last_entry_is_no_exception(recorded: Engine) -> None:
    await tamper(recorded, REWRITE.format(seq=COUNT))

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("changed", COUNT)


# Gives an entry another text, and the hash of that.
REWRITE = """
update audit set entry = '{{"action":"tool.call","target":"other","outcome":"done"}}' where seq = {seq};
update audit set hash = sha256(
  previous || int8send(seq) || uuid_send(id) || int8send((extract(epoch from at) * 1000000)::bigint)
  || int8send((extract(epoch from sealed_at) * 1000000)::bigint) || convert_to(entry::text, 'UTF8')) where seq = {seq};
delete from audit_person where seq = {seq};
"""

REMOVALS = {
    "one in the middle": ("delete from audit where seq = 7", 7),
    "the first": ("delete from audit where seq = 1", 1),
    "the last": (f"delete from audit where seq = {COUNT}", COUNT),
    "several": ("delete from audit where seq between 9 and 12", 9),
    "all": ("delete from audit", 1),
}


@pytest.mark.parametrize("removal", REMOVALS)
async def test_a_removed_entry_is_found_with_its_place(recorded: Engine, removal: str) -> None:
    statement, place = REMOVALS[removal]
    await tamper(recorded, statement)

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("missing", place)


INSERT = """
insert into audit (tenant_id, seq, sealed_at, id, at, entry, previous, hash)
select tenant_id, {seq}, sealed_at + interval '1 us', gen_random_uuid(), at, entry, {previous}, sha256('x')
from audit where seq = {of}
"""


async def test_an_entry_inserted_beside_another_is_found(recorded: Engine) -> None:
    await tamper(recorded, INSERT.format(seq=7, of=7, previous="previous"))

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("inserted", 7)


async def test_an_entry_inserted_beside_the_last_one_that_is_read_at_once_is_found(
    recorded: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.audit.audit.READ_TOGETHER", 7)
    await tamper(recorded, INSERT.format(seq=7, of=7, previous="previous"))

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("inserted", 7)


async def test_an_entry_inserted_after_the_last_is_found(recorded: Engine) -> None:
    await tamper(recorded, INSERT.format(seq=COUNT + 1, of=COUNT, previous="hash"))

    fault = await fault_of(recorded)

    assert fault.seq == COUNT + 1


@pytest.mark.parametrize("place", [1, 7, COUNT])
async def test_personal_data_that_was_removed_and_not_erased_is_found_with_its_place(
    recorded: Engine, place: int
) -> None:
    await recorded.audit.record(AuditEntry(action="tool.call", user="bob"))
    await recorded.audit.erase(user="bob")
    await tamper(recorded, f"delete from audit_person where seq = {place}")

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("missing", place)
    assert fault.what == f"from the entry {place} on, personal data of 1 entries was removed, not erased"


@pytest.mark.parametrize("place", [-5, COUNT + 5])
async def test_personal_data_without_an_entry_is_found(recorded: Engine, place: int) -> None:
    await tamper(recorded, f"update audit_person set seq = {place} where seq = 7")
    await tamper(
        recorded,
        "insert into audit_open (tenant_id, id, entry) select id, gen_random_uuid(), "
        """'{"action":"audit.erase","target":"","outcome":"done","count":1}' from tenant""",
    )

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("inserted", place)


async def test_a_changed_end_of_the_chain_is_found(recorded: Engine) -> None:
    await tamper(recorded, "update audit_chain set sealed_at = sealed_at + interval '1 year'")

    fault = await fault_of(recorded)

    assert (fault.kind, fault.seq) == ("changed", COUNT)


async def test_a_chain_that_was_written_anew_is_found_by_a_published_head(recorded: Engine) -> None:
    published = (await recorded.audit.verify()).progress
    heads = {published.seq: bytes.fromhex(published.hash)}
    await tamper(
        recorded,
        "delete from audit_person",
        "insert into audit_open (tenant_id, id, entry) select tenant_id, id, entry from audit where seq <> 7",
        "delete from audit",
        "delete from audit_chain",
    )
    await record(recorded, 1)

    alone, with_heads = await recorded.audit.verify(), await recorded.audit.verify(heads=heads)

    assert alone.fault is not None, "the hashes of personal data are in the entries"
    assert with_heads.fault is not None
    assert (with_heads.fault.kind, with_heads.fault.seq) == ("changed", COUNT)


async def test_a_published_head_beyond_the_end_is_found(recorded: Engine) -> None:
    found = await recorded.audit.verify(heads={COUNT + 5: b"hash"})

    assert found.fault is not None
    assert (found.fault.kind, found.fault.seq) == ("missing", COUNT + 1)


async def exported(engine: Engine) -> list[bytes]:
    """The lines of an exported file."""
    return [f"{line}\n".encode() async for line in engine.audit.export()]


async def test_an_exported_file_verifies_without_the_database(recorded: Engine) -> None:
    lines = await exported(recorded)

    found = verify_lines(lines)

    assert (found.fault, found.complete, found.progress.verified) == (None, True, COUNT)


# The lines of a file after the change, and the place of the fault. Line 0 is the header, and line n the entry n.
FILES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "a changed line": (lambda lines: [*lines[:7], lines[7].replace(b"tool-6", b"tool-x"), *lines[8:]], 7),
    "a removed line": (lambda lines: [*lines[:7], *lines[8:]], 7),
    "a repeated line": (lambda lines: [*lines[:8], *lines[7:]], 7),
    "two lines in the wrong order": (lambda lines: [*lines[:7], lines[8], lines[7], *lines[9:]], 7),
    "a file without its end": (lambda lines: lines[:-1], COUNT + 1),
    "a file without its last entry": (lambda lines: [*lines[:-2], lines[-1]], COUNT),
}


@pytest.mark.parametrize("change", FILES)
async def test_a_changed_file_is_found_with_its_place(recorded: Engine, change: str) -> None:
    changed, place = FILES[change]
    lines = changed(await exported(recorded))

    found = verify_lines(lines)

    assert found.fault is not None
    assert found.fault.seq == place


@pytest.mark.parametrize("lines", [[], [b"{}"], [b"no json"], [b'{"format":"other","version":1}']])
def test_what_is_no_exported_file_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(InvalidInput):
        verify_lines(lines)


async def test_entries_that_are_recorded_while_a_chain_is_verified_do_no_harm(recorded: Engine) -> None:
    async def verify() -> list[Verification]:
        return [await recorded.audit.verify() for _ in range(10)]

    async with asyncio.TaskGroup() as group:
        verifying = group.create_task(verify())
        group.create_task(record(recorded, 100))

    assert [found.fault for found in verifying.result()] == [None] * 10


MANY = """
insert into audit_open (tenant_id, id, entry, person, salt)
select id, gen_random_uuid(), '{"action":"tool.call","target":"x","outcome":"done"}', '{"user":"ann"}', 'salt'
from tenant, generate_series(1, 3000) where name = 'default'
"""


@pytest.mark.parametrize(
    ("statement", "args"),
    [("links", "2900, 10"), ("entries_since", "2900, 10, null, null, null, null, null")],
)
async def test_the_end_of_a_long_chain_is_read_without_its_beginning(engine: Engine, statement: str, args: str) -> None:
    await tamper(engine, MANY)
    await seal_all(engine.database)
    tenant = await engine.database.tenant()

    async with engine.postgres.owner() as owner:
        await owner.script(f"analyze audit; analyze audit_person; prepare read as {sql(statement)}")
        await owner.script("set plan_cache_mode = force_generic_plan")
        rows = await owner.all(f"explain (analyze, costs off, timing off) execute read('{tenant}', {args})")

    counts = [int(float(found)) for row in rows for found in re.findall(r"actual rows=([\d.]+)", row[0])]
    assert counts
    assert max(counts) <= 100, "\n".join(row[0] for row in rows)


async def test_an_erasure_is_in_the_chain_as_soon_as_it_takes_effect(recorded: Engine) -> None:
    await recorded.audit.erase(user="ann", by="root")

    async with recorded.postgres.owner() as owner:
        assert await owner.value("select count(*) from audit where action = 'audit.erase'") == 1


async def test_an_erasure_while_a_chain_is_exported_is_no_fault(recorded: Engine) -> None:
    exporting = recorded.audit.export()
    lines = [f"{await anext(exporting)}\n".encode()]  # the header: the end of the chain is known

    await recorded.audit.erase(user="ann", by="root")
    lines += [f"{line}\n".encode() async for line in exporting]

    assert (verify_lines(lines).fault, len(lines)) == (None, COUNT + 3)
