"""Migrates the schema: applies plain `.sql` files, forward only, all missing ones in one transaction.

The files in `migrations/` are applied once, in the order of their names. The files in `functions/`, beside the code
that calls them, are applied again whenever their text changes. The database records each applied file with its hash. So
a migration that was edited, lost or inserted before an applied one is detected.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from holdfast.core.errors import HoldfastError, SchemaMismatch
from holdfast.postgres.database import OwnerConnection
from holdfast.postgres.sql import statements
from holdfast.postgres.tenancy import ensure_roles, set_definer_owner

LOCK = 7_238_451_906  # any number that no other program uses

# If the ledger exists, it is the lock: anyone who can log in could take an advisory lock and keep it.
LOCK_LEDGER = "lock table holdfast.migration in share row exclusive mode"
# An owner named like our schema would otherwise create the tables there. Hosted servers have pgvector in `extensions`.
SEARCH_PATH = "set local search_path = public, extensions"

sql = statements(__name__)


@dataclass(frozen=True)
class SqlFile:
    """A `.sql` file."""

    name: str
    text: str

    @cached_property
    def hash(self) -> str:
        """The hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Plan:
    """The files that have to be applied."""

    migrations: tuple[SqlFile, ...]
    functions: tuple[SqlFile, ...]

    def __bool__(self) -> bool:
        return bool(self.migrations or self.functions)


@dataclass(frozen=True, slots=True)
class Schema:
    """All `.sql` files of a program."""

    migrations: tuple[SqlFile, ...]
    functions: tuple[SqlFile, ...]

    @classmethod
    @cache
    def packaged(cls) -> "Schema":
        """Return the files of this program."""
        package = files("holdfast")
        functions = (step for folder in package.iterdir() for step in _steps(folder / "functions", folder.name + "/"))
        return cls(
            migrations=tuple(sorted(_steps(package / "postgres" / "migrations"), key=lambda step: step.name)),
            functions=tuple(sorted(functions, key=lambda step: step.name)),
        )


def plan(schema: Schema, migrated: Mapping[str, str], functions: Mapping[str, str]) -> Plan:
    """Return the files to apply, given name and hash of the applied ones. Raise SchemaMismatch if they conflict."""
    known = {step.name: step for step in schema.migrations}
    newest = max(known, default="")
    for name, hash in sorted(migrated.items()):
        if name not in known:
            if name > newest:
                raise SchemaMismatch(
                    f"the database has the unknown migration {name}",
                    why="a newer version of holdfast migrated it",
                    next="Run that version or a newer one.",
                )
            raise SchemaMismatch(
                f"the migration {name} is missing",
                why="it was applied to the database, but this program does not have it",
                next="Restore the file: never remove an applied migration.",
            )
        if known[name].hash != hash:
            raise SchemaMismatch(
                f"the migration {name} was changed after it was applied",
                why="its hash differs from the hash in the database",
                next="Restore the file, and write a new migration for the change.",
            )
    last = max(migrated, default="")
    missing = tuple(step for step in schema.migrations if step.name not in migrated)
    for step in missing:
        if step.name < last:
            raise SchemaMismatch(
                f"the migration {step.name} is out of order",
                why=f"{last} is already applied",
                next="Give it a number after the last one.",
            )
    return Plan(missing, tuple(step for step in schema.functions if functions.get(step.name) != step.hash))


async def find_pending(owner: OwnerConnection, schema: Schema) -> Plan:
    """Return the files to apply to this database. Changes nothing."""
    if not await owner.value(sql("has_ledger")):
        return plan(schema, {}, {})
    migrated = {row["name"]: row["hash"] for row in await owner.all(sql("migrated"))}
    functions = {row["name"]: row["hash"] for row in await owner.all(sql("installed_functions"))}
    return plan(schema, migrated, functions)


async def migrate(owner: OwnerConnection, schema: Schema | None = None) -> Plan:
    """Apply the missing files, once even if several processes do this at the same time; return what this one did."""
    schema = schema or Schema.packaged()
    if not await find_pending(owner, schema):
        return Plan((), ())
    async with owner.transaction():
        if not await owner.value(sql("has_ledger")):
            await owner.value(sql("lock"), LOCK)
        await owner.script(SEARCH_PATH)
        await ensure_roles(owner)
        await owner.script((files("holdfast.postgres") / "ledger.sql").read_text())
        await owner.script(LOCK_LEDGER)
        todo = await find_pending(owner, schema)
        for step in todo.migrations:
            await _apply(owner, step)
            await owner.run(sql("record_migration"), step.name, step.hash)
        for step in todo.functions:
            await _apply(owner, step)
            await owner.run(sql("record_function"), step.name, step.hash)
        if todo:
            await set_definer_owner(owner)
    return todo


async def _apply(owner: OwnerConnection, step: SqlFile) -> None:
    try:
        await owner.script(step.text)
    except HoldfastError as error:
        error.add_note(f"while applying {step.name}; the database is unchanged")
        raise


def _steps(folder: Traversable, prefix: str = "") -> Iterable[SqlFile]:
    if folder.is_dir():
        for file in folder.iterdir():
            if file.name.endswith(".sql"):
                yield SqlFile(prefix + file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
