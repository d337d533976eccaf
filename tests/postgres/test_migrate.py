import asyncio

import pytest

from holdfast.core.errors import Broken, HoldfastError, SchemaMismatch
from holdfast.postgres.database import OwnerConnection, open_owner
from holdfast.postgres.migrate import Plan, Schema, SqlFile, find_pending, migrate, plan
from holdfast.postgres.options import Options

pytestmark = pytest.mark.req("ENG-03")

FIRST = SqlFile("0001_first", "-- the first\ncreate table public.first (id int)")
SECOND = SqlFile("0002_second", "create table public.second (id int)")
THIRD = SqlFile("0003_third", "create table public.third (id int)")
BROKEN = SqlFile("0003_broken", "create table public.third (id int); select 1 / 0")
FUNCTION = SqlFile(
    "bus/answer", "create or replace function public.answer() returns int language plpgsql as 'begin return 1; end'"
)
CHANGED = SqlFile(FUNCTION.name, FUNCTION.text.replace("return 1", "return 2"))


def schema(*migrations: SqlFile, functions: tuple[SqlFile, ...] = ()) -> Schema:
    return Schema(migrations, functions)


def ran(*steps: SqlFile) -> dict[str, str]:
    return {step.name: step.hash for step in steps}


def test_what_has_not_run_is_left_to_do_in_order() -> None:
    assert plan(schema(FIRST, SECOND, THIRD), {}, {}) == Plan((FIRST, SECOND, THIRD), ())
    assert plan(schema(FIRST, SECOND, THIRD), ran(FIRST), {}) == Plan((SECOND, THIRD), ())
    assert not plan(schema(FIRST, SECOND), ran(FIRST, SECOND), {})


def test_a_function_whose_text_changed_is_applied_again_and_no_other() -> None:
    functions = (FUNCTION, SqlFile("bus/other", "other"))

    assert plan(schema(functions=functions), {}, ran(*functions)) == Plan((), ())
    assert plan(schema(functions=(CHANGED, functions[1])), {}, ran(*functions)) == Plan((), (CHANGED,))


@pytest.mark.parametrize(
    ("steps", "done", "said"),
    [
        ((FIRST, SECOND), {**ran(FIRST), SECOND.name: "another"}, "0002_second was changed after it was applied"),
        ((FIRST, THIRD), ran(FIRST, SECOND, THIRD), "0002_second is missing"),
        ((FIRST, SECOND, THIRD), ran(FIRST, THIRD), "0002_second is out of order"),
        ((FIRST,), ran(FIRST, SECOND), "unknown migration 0002_second: a newer version of holdfast"),
        ((), ran(FIRST), "a newer version of holdfast"),
    ],
)
def test_what_does_not_fit_is_named_with_the_way_out(
    steps: tuple[SqlFile, ...], done: dict[str, str], said: str
) -> None:
    with pytest.raises(SchemaMismatch, match=said) as refused:
        plan(schema(*steps), done, {})

    assert refused.value.next


def test_the_packaged_steps_are_numbered_without_a_gap() -> None:
    numbers = [int(step.name.partition("_")[0]) for step in Schema.packaged().migrations]

    assert numbers == list(range(1, len(numbers) + 1))


async def tables(owner: OwnerConnection) -> set[str]:
    rows = await owner.all("select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace")
    return {row["relname"] for row in rows}


async def test_a_new_database_gets_every_step_and_a_second_run_does_nothing(empty_database_url: str) -> None:
    packaged = Schema.packaged()
    async with open_owner(empty_database_url, Options()) as owner:
        first = await migrate(owner)
        second = await migrate(owner)

        rows = await owner.all("select name, hash from holdfast.migration order by name")

    assert first == Plan(packaged.migrations, packaged.functions)
    assert not second
    assert [tuple(row) for row in rows] == [(step.name, step.hash) for step in packaged.migrations]


async def test_asking_what_is_left_to_do_changes_nothing(empty_database_url: str) -> None:
    async with open_owner(empty_database_url, Options()) as owner:
        todo = await find_pending(owner, schema(FIRST, SECOND))

        assert todo == Plan((FIRST, SECOND), ())
        assert await owner.value("select to_regnamespace('holdfast') is null")
        assert await tables(owner) == set()


async def test_many_who_migrate_at_once_migrate_once(empty_database_url: str) -> None:
    steps = schema(FIRST, SECOND, THIRD, functions=(FUNCTION,))

    async def run() -> Plan:
        async with open_owner(empty_database_url, Options()) as owner:
            return await migrate(owner, steps)

    async with asyncio.timeout(30):
        done = await asyncio.gather(*(run() for _ in range(12)))

    assert [todo for todo in done if todo] == [Plan(steps.migrations, steps.functions)]


async def test_only_new_steps_run_on_a_database_that_has_some(empty_database_url: str) -> None:
    async with open_owner(empty_database_url, Options()) as owner:
        await migrate(owner, schema(FIRST))
        await owner.run("insert into public.first values (1)")

        done = await migrate(owner, schema(FIRST, SECOND))

        assert done == Plan((SECOND,), ())
        assert await owner.value("select count(*) from public.first") == 1


async def test_a_step_that_fails_leaves_the_database_as_it_was(empty_database_url: str) -> None:
    async with open_owner(empty_database_url, Options()) as owner:
        await migrate(owner, schema(FIRST))

        with pytest.raises(HoldfastError, match="division by zero") as failed:
            await migrate(owner, schema(FIRST, SECOND, BROKEN, functions=(FUNCTION,)))

        assert any("0003_broken" in note for note in failed.value.__notes__)
        assert await tables(owner) == {"first"}
        assert await owner.value("select count(*) from holdfast.migration") == 1
        assert await migrate(owner, schema(FIRST, SECOND)) == Plan((SECOND,), ())


async def test_a_function_file_that_changed_is_applied_again(empty_database_url: str) -> None:
    async with open_owner(empty_database_url, Options()) as owner:
        await migrate(owner, schema(FIRST, functions=(FUNCTION,)))
        before = await owner.value("select public.answer()")

        done = await migrate(owner, schema(FIRST, functions=(CHANGED,)))

        assert done == Plan((), (CHANGED,))
        assert (before, await owner.value("select public.answer()")) == (1, 2)
        assert not await migrate(owner, schema(FIRST, functions=(CHANGED,)))


async def test_a_database_that_a_newer_program_migrated_is_left_alone(empty_database_url: str) -> None:
    async with open_owner(empty_database_url, Options()) as owner:
        await migrate(owner, schema(FIRST, SECOND))

        with pytest.raises(Broken, match="newer version of holdfast"):
            await migrate(owner, schema(FIRST))

        assert await tables(owner) == {"first", "second"}
