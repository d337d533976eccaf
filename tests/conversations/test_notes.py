import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast.conversations.notes import MAX_NOTES_BYTES, MAX_REVISIONS, Note, Notes
from holdfast.core.errors import Broken, Conflict, InvalidInput, NotFound, TooLarge
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction
from tests.clock import Clock

ANN: dict[str, Any] = {"user": "ann", "agent": "support"}
START = "# Drinks\n\ntea\n\n# Tasks\n\n- call\n"


@pytest.fixture
def notes(engine: Engine) -> Notes:
    return engine.notes


@pytest.fixture
async def started(notes: Notes) -> Note:
    """Notes about ann, at version 1."""
    return await notes.edit(**ANN, operation="overwrite", content=START)


async def count(engine: Engine, table: str) -> int:
    return await engine.database.value(f"select count(*) from {table} where tenant_id = $1")


@pytest.mark.req("NOTE-01")
async def test_before_anything_is_noted_there_is_an_empty_text_and_reading_writes_nothing(
    engine: Engine, notes: Notes
) -> None:
    note = await notes.read(**ANN)

    assert note == Note("ann", "support", "", 0, None)
    assert await notes.edit(**ANN, operation="read") == note
    assert await notes.revisions(**ANN) == []
    assert await count(engine, "agent_long_term_memory") == 0
    assert await count(engine, "identity") == 0


@pytest.mark.req("NOTE-01")
async def test_notes_are_those_of_one_user_and_one_agent(notes: Notes, started: Note) -> None:
    await notes.edit(user="ann", agent="sales", content="buys")
    await notes.edit(user="bob", agent="support", content="calls")

    assert await notes.read(**ANN) == started
    assert (await notes.read(user="ann", agent="sales")).notes == "buys"
    assert (await notes.read(user="bob", agent="support")).notes == "calls"
    assert (await notes.read(user="bob", agent="sales")).version == 0


@pytest.mark.req("NOTE-01", "SAFE-02")
async def test_another_tenant_s_user_of_the_same_name_has_notes_of_its_own(engine: Engine, started: Note) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme").notes

    await acme.edit(**ANN, content="theirs")

    assert (await acme.read(**ANN)).notes == "theirs"
    assert len(await acme.revisions(**ANN)) == 1
    assert await engine.notes.read(**ANN) == started


@pytest.mark.req("NOTE-01")
async def test_the_table_has_the_columns_that_others_know_it_by(engine: Engine, started: Note) -> None:
    user_id = await engine.identities.id("user", "ann")

    row = await engine.database.one(
        "select id, user_id, agent_name, notes, created_at, updated_at from agent_long_term_memory where tenant_id = $1"
    )

    assert row is not None
    assert (row["user_id"], row["agent_name"], row["notes"]) == (user_id, "support", START)
    assert row["created_at"] == row["updated_at"] == started.updated_at


@pytest.mark.req("NOTE-02")
@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ({"operation": "read"}, START),
        ({"operation": "overwrite", "content": "new"}, "new"),
        ({"operation": "overwrite", "content": ""}, ""),
        ({"content": "more"}, START + "\nmore"),
        ({"operation": "append", "content": "more"}, START + "\nmore"),
        ({"operation": "prepend", "content": "first"}, "first\n\n" + START),
        ({"operation": "delete_section_by_header", "section_header": "Drinks"}, "# Tasks\n\n- call\n"),
        (
            {"operation": "replace_section_by_header", "section_header": "# Drinks", "content": "coffee"},
            "# Drinks\n\ncoffee\n\n# Tasks\n\n- call\n",
        ),
        ({"operation": "delete_all_notes"}, ""),
    ],
)
async def test_each_operation_does_what_it_says(
    notes: Notes, started: Note, arguments: dict[str, Any], outcome: str
) -> None:
    note = await notes.edit(**ANN, **arguments)

    assert note.notes == outcome
    assert note.version == (1 if outcome == START else 2)
    assert await notes.read(**ANN) == note


@pytest.mark.req("NOTE-02")
@pytest.mark.parametrize("operation", ["append", "prepend", "overwrite"])
async def test_the_first_content_stands_alone(notes: Notes, operation: Any) -> None:
    note = await notes.edit(**ANN, operation=operation, content="tea")

    assert (note.notes, note.version) == ("tea", 1)


@pytest.mark.req("NOTE-02", "ENG-08")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"operation": "append"}, "append requires content"),
        ({"operation": "overwrite"}, "overwrite requires content"),
        ({"operation": "replace_section_by_header", "section_header": "Tasks"}, "requires content"),
        ({"operation": "replace_section_by_header", "content": "x"}, "requires section_header"),
        ({"operation": "delete_section_by_header"}, "requires section_header"),
        ({"operation": "delete_section_by_header", "section_header": "Tasks", "content": ""}, "does not take content"),
        ({"operation": "delete_section_by_header", "section_header": " "}, "the header is empty"),
        ({"operation": "append", "content": "x", "section_header": "Tasks"}, "append does not take section_header"),
        ({"operation": "read", "content": "x"}, "read does not take content"),
        ({"operation": "delete_all_notes", "content": "x"}, "delete_all_notes does not take content"),
        ({"operation": "burn"}, "delete_all_notes"),
    ],
)
async def test_an_operation_with_the_wrong_arguments_is_refused_and_says_which_are_right(
    notes: Notes, started: Note, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        await notes.edit(**ANN, **arguments)

    assert await notes.read(**ANN) == started


@pytest.mark.req("NOTE-02")
async def test_a_section_that_is_not_there_is_an_error_that_lists_those_there_are(notes: Notes, started: Note) -> None:
    with pytest.raises(NotFound, match="# Drinks, # Tasks"):
        await notes.edit(**ANN, operation="delete_section_by_header", section_header="Food")
    with pytest.raises(NotFound, match="there are no headers"):
        await notes.edit(user="bob", agent="support", operation="delete_section_by_header", section_header="Food")

    assert await notes.read(**ANN) == started
    assert (await notes.read(user="bob", agent="support")).version == 0


@pytest.mark.req("NOTE-02", "ENG-08")
async def test_any_text_comes_back_as_it_was(notes: Notes) -> None:
    strange: dict[str, Any] = {"user": "nul\0\ud83d", "agent": "agent \0 😀 '"}
    text = "# nul \0\r\n\r\nhalf \ud83d, escape \U0010fffe, 😀\r\n"

    note = await notes.edit(**strange, content=text)

    assert note.notes == text
    assert await notes.read(**strange) == note
    assert (await notes.revisions(**strange))[0].notes == text
    changed = await notes.edit(
        **strange, operation="replace_section_by_header", section_header="nul \0", content="\ud83d"
    )
    assert changed.notes == "# nul \0\r\n\r\n\ud83d\r\n"


@pytest.mark.req("NOTE-03")
async def test_edits_at_once_are_all_kept_and_each_makes_a_version(engine: Engine) -> None:
    words = [f"fact {number}" for number in range(24)]

    made = await asyncio.gather(*(engine.notes.edit(**ANN, content=word) for word in words))

    note = await engine.notes.read(**ANN)
    assert sorted(note.notes.split("\n\n")) == sorted(words)
    assert sorted(made_note.version for made_note in made) == list(range(1, 25))
    assert [revision.version for revision in await engine.notes.revisions(**ANN)] == list(range(24, 0, -1))


@pytest.mark.req("NOTE-03")
async def test_of_many_who_edit_the_same_version_one_wins_and_the_others_are_told(notes: Notes, started: Note) -> None:
    edits = [notes.edit(**ANN, content=f"fact {number}", version=1) for number in range(24)]

    outcomes = await asyncio.gather(*edits, return_exceptions=True)

    won = [outcome for outcome in outcomes if isinstance(outcome, Note)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert (len(won), len(lost)) == (1, 23)
    assert {(error.expected, error.current) for error in lost} == {(1, 2)}
    assert await notes.read(**ANN) == won[0]


@pytest.mark.req("NOTE-03")
async def test_a_version_that_is_not_the_current_one_is_a_conflict_for_every_operation(
    notes: Notes, started: Note
) -> None:
    for edit in (
        notes.edit(**ANN, operation="read", version=0),
        notes.edit(**ANN, operation="delete_all_notes", version=2),
        notes.edit(user="bob", agent="support", content="x", version=1),
        notes.restore(**ANN, revision=1, version=7),
    ):
        with pytest.raises(Conflict):
            await edit

    assert await notes.read(**ANN) == started
    assert (await notes.edit(user="bob", agent="support", content="x", version=0)).version == 1


@pytest.mark.req("NOTE-03")
async def test_every_revision_is_kept_with_what_made_it_and_when(notes: Notes, started: Note, clock: Clock) -> None:
    await clock.advance(timedelta(hours=1))
    await notes.edit(**ANN, operation="delete_section_by_header", section_header="Drinks")
    await clock.advance(timedelta(hours=1))
    emptied = await notes.edit(**ANN, operation="delete_all_notes")

    found = await notes.revisions(**ANN)

    assert [(kept.version, kept.operation, kept.notes) for kept in found] == [
        (3, "delete_all_notes", ""),
        (2, "delete_section_by_header", "# Tasks\n\n- call\n"),
        (1, "overwrite", START),
    ]
    assert [found[0].created_at, found[2].created_at] == [emptied.updated_at, started.updated_at]
    assert found[2].created_at < found[1].created_at < found[0].created_at


@pytest.mark.req("NOTE-03")
async def test_a_revision_is_brought_back_as_a_new_version(notes: Notes, started: Note) -> None:
    await notes.edit(**ANN, operation="delete_all_notes")

    note = await notes.restore(**ANN, revision=1, version=2)

    assert (note.notes, note.version) == (START, 3)
    assert await notes.read(**ANN) == note
    assert [kept.operation for kept in await notes.revisions(**ANN)] == ["restore", "delete_all_notes", "overwrite"]


@pytest.mark.req("NOTE-03", "ENG-08")
@pytest.mark.parametrize("revision", [-1, 0, 2, 2**31, 10**30])
async def test_a_revision_that_never_was_is_not_found(notes: Notes, started: Note, revision: int) -> None:
    with pytest.raises(NotFound, match="the revisions are 1 to 1"):
        await notes.restore(**ANN, revision=revision)
    with pytest.raises(NotFound, match="no notes have been written yet"):
        await notes.restore(user="bob", agent="support", revision=revision)

    assert await notes.read(**ANN) == started


@pytest.mark.req("NOTE-03")
async def test_revisions_come_in_pages(notes: Notes) -> None:
    for number in range(5):
        await notes.edit(**ANN, content=str(number))

    first = await notes.revisions(**ANN, limit=2)
    rest = await notes.revisions(**ANN, before=first[-1].version)

    assert [kept.version for kept in first + rest] == [5, 4, 3, 2, 1]
    assert await notes.revisions(**ANN, before=1) == []
    assert len(await notes.revisions(**ANN, before=10**30)) == 5
    for limit in (0, MAX_REVISIONS + 1):
        with pytest.raises(InvalidInput, match="Use 1 to"):
            await notes.revisions(**ANN, limit=limit)


@pytest.mark.req("NOTE-03")
@pytest.mark.parametrize(
    "arguments",
    [
        {"operation": "overwrite", "content": START},
        {"operation": "append", "content": " \n"},
        {"operation": "replace_section_by_header", "section_header": "Drinks", "content": "tea"},
    ],
)
async def test_an_edit_that_changes_nothing_makes_no_version(
    notes: Notes, started: Note, arguments: dict[str, Any]
) -> None:
    note = await notes.edit(**ANN, **arguments)

    assert note == started
    assert len(await notes.revisions(**ANN)) == 1


@pytest.mark.req("NOTE-03", "ENG-08")
async def test_notes_beyond_the_limit_are_refused_with_both_sizes(notes: Notes) -> None:
    full = await notes.edit(**ANN, content="ü" * (MAX_NOTES_BYTES // 2))

    with pytest.raises(
        TooLarge, match=f"they would have {MAX_NOTES_BYTES + 3} bytes; the limit is {MAX_NOTES_BYTES}"
    ) as no:
        await notes.edit(**ANN, content="x")
    with pytest.raises(TooLarge):
        await notes.edit(**ANN, operation="overwrite", content="x" * 10_000_000)
    with pytest.raises(TooLarge):
        await notes.edit(**ANN, operation="delete_section_by_header", section_header="#" * 10_000_000)

    assert (no.value.details["size"], no.value.details["limit"]) == (MAX_NOTES_BYTES + 3, MAX_NOTES_BYTES)
    assert await notes.read(**ANN) == full


@pytest.mark.req("ENG-08")
@pytest.mark.parametrize("names", [{"user": "x" * 2001, "agent": "a"}, {"user": "ann", "agent": "\0" * 300}])
async def test_a_name_too_long_for_a_key_is_refused(engine: Engine, notes: Notes, names: dict[str, str]) -> None:
    with pytest.raises(TooLarge, match="the limit is 2000"):
        await notes.edit(user=names["user"], agent=names["agent"], content="x")

    assert await count(engine, "identity") == 0


@pytest.mark.req("NOTE-03", "ENG-09")
async def test_an_edit_takes_effect_with_the_caller_s_transaction_or_not_at_all(engine: Engine, started: Note) -> None:
    seen: list[Note] = []

    async def work(tx: Transaction) -> None:
        await engine.notes.edit(**ANN, operation="delete_all_notes", tx=tx)
        await engine.notes.restore(**ANN, revision=1, tx=tx)
        seen.append(await engine.notes.read(**ANN, tx=tx))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await engine.atomically(work)

    assert [(inside.version, inside.notes) for inside in seen] == [(3, START)]
    assert await engine.notes.read(**ANN) == started
    assert len(await engine.notes.revisions(**ANN)) == 1


@pytest.mark.req("NOTE-03", "SAFE-02")
async def test_the_transaction_of_another_tenant_is_refused(engine: Engine, started: Note) -> None:
    await engine.tenants.create("acme")

    async with engine.tenant("acme").transaction() as theirs:
        with pytest.raises(Broken, match="belongs to another tenant"):
            await engine.notes.edit(**ANN, content="x", tx=theirs)

    assert await engine.notes.read(**ANN) == started


@pytest.mark.req("NOTE-03")
@pytest.mark.parametrize("tenancy", ["transaction"])
async def test_edits_at_once_are_all_kept_behind_a_pooler_too(engine: Engine, tenancy: str) -> None:
    await asyncio.gather(*(engine.notes.edit(**ANN, content=f"fact {number}") for number in range(24)))

    note = await engine.notes.read(**ANN)

    assert (note.version, len(note.notes.split("\n\n"))) == (24, 24)


@pytest.mark.req("NOTE-03", "EXEC-05")
async def test_an_edit_with_the_same_key_is_made_once(engine: Engine, notes: Notes, started: Note) -> None:
    await asyncio.gather(*(notes.edit(**ANN, content="more", key="run:1") for _ in range(5)))
    deleted = [
        await notes.edit(**ANN, operation="delete_section_by_header", section_header="Drinks", key="run:2")
        for _ in range(2)
    ]
    fresh = await asyncio.gather(*(notes.edit(user="bob", agent="support", content="x", key="run:1") for _ in range(5)))

    assert [note.version for note in deleted] == [3, 3]
    assert deleted[1].notes == "# Tasks\n\n- call\n\nmore"
    assert {(note.notes, note.version) for note in fresh} == {("x", 1)}


@pytest.mark.req("NOTE-03")
async def test_who_removes_the_notes_removes_their_revisions(engine: Engine, started: Note) -> None:
    await engine.database.run("delete from agent_long_term_memory where tenant_id = $1")

    assert await count(engine, "agent_long_term_memory_revision") == 0
