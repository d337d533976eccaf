"""Rules for forms that a Citus cluster refused or lost when the engine ran on one.

The statements of functions come from the catalogue of a migrated database, all others from the `.sql` files. What is
refused today is listed in `KNOWN`; the list can only shrink.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

from pglast.ast import (
    Alias,
    ColumnRef,
    CommonTableExpr,
    CreateExtensionStmt,
    DeleteStmt,
    InsertStmt,
    Node,
    RangeSubselect,
    RangeVar,
    SelectStmt,
    String,
    UpdateStmt,
)

from holdfast.postgres.database import OwnerConnection
from tests.rules.plans import PACKAGE, SYSTEM, roles_of
from tests.rules.schema import tenant_tables
from tests.rules.syntax import calls, statements, statements_of_function, tables, walk

# Volatile functions that only make values.
VALUES = {"gen_random_uuid", "random", "uuid7", "uuidv7"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What the catalogue says of names."""

    tenant_tables: frozenset[str]
    changing: frozenset[str]  # functions that are not immutable
    acting: frozenset[str]  # volatile functions that do more than make a value


@dataclass(frozen=True, slots=True)
class Rule:
    """A form that is refused, how to see it in a statement, and what to write instead."""

    name: str
    breaks: Callable[[Node, Facts], bool]
    instead: str
    of: Literal["statements", "statements across tenants", "migrations"] = "statements"


def copies_rows(statement: Node, facts: Facts) -> bool:
    """An insert from a select is carried out by COPY, unless it returns rows or handles conflicts."""
    return any(
        isinstance(part, InsertStmt)
        and isinstance(part.selectStmt, SelectStmt)
        and part.selectStmt.fromClause is not None
        and isinstance(part.relation, RangeVar)
        and part.relation.relname in facts.tenant_tables
        and part.returningClause is None
        and part.onConflictClause is None
        for part in walk(statement)
    )


def updates_by_changing_function(statement: Node, facts: Facts) -> bool:
    """What `do update` sets is computed on each node, so it must be the same everywhere."""
    return any(
        isinstance(part, InsertStmt)
        and isinstance(part.relation, RangeVar)
        and part.relation.schemaname != "holdfast"  # what belongs to the schema stays on one node
        and bool(calls(part.onConflictClause) & facts.changing)
        for part in walk(statement)
    )


def acts_over_table(statement: Node, facts: Facts) -> bool:
    """A function that writes would run on a node that has no other tables; a notification is lost there."""
    return any(
        isinstance(part, SelectStmt | UpdateStmt | DeleteStmt)
        and bool(tables(_sources(part)) & facts.tenant_tables)
        and bool(calls(part) & facts.acting)
        for part in walk(statement)
    )


def takes_whole_row(statement: Node, facts: Facts) -> bool:
    """A row of a subquery has no type that another node knows."""
    made = {part.ctename for part in walk(statement) if isinstance(part, CommonTableExpr)}
    names = {
        _alias(part)
        for part in walk(statement)
        if isinstance(part, RangeSubselect) or (isinstance(part, RangeVar) and part.relname in made)
    }
    return any(
        isinstance(part, ColumnRef)
        and part.fields is not None
        and len(part.fields) == 1
        and isinstance(part.fields[0], String)
        and part.fields[0].sval in names
        for part in walk(statement)
    )


def locks_rows(statement: Node, facts: Facts) -> bool:
    """Rows can be locked inside one tenant only."""
    return any(
        isinstance(part, SelectStmt)
        and part.lockingClause is not None
        and tables(part.fromClause) & facts.tenant_tables
        for part in walk(statement)
    )


def joins_tables(statement: Node, facts: Facts) -> bool:
    """A join or subquery over all tenants is seldom planned."""
    return (
        len([part for part in walk(statement) if isinstance(part, RangeVar) and part.relname in facts.tenant_tables])
        > 1
    )


def creates_extension(statement: Node, facts: Facts) -> bool:
    """Only the owner of an extension may say `create extension if not exists` once it is there."""
    return isinstance(statement, CreateExtensionStmt)


def _sources(part: SelectStmt | UpdateStmt | DeleteStmt) -> object:
    match part:
        case SelectStmt():
            return part.fromClause
        case UpdateStmt():
            return part.relation, part.fromClause
        case _:
            return part.relation, part.usingClause


def _alias(part: RangeSubselect | RangeVar) -> str | None:
    if isinstance(part.alias, Alias):
        return part.alias.aliasname
    return part.relname if isinstance(part, RangeVar) else None


RULES = (
    Rule("insert … select that becomes a COPY", copies_rows, "end it with returning or on conflict"),
    Rule(
        "upsert by a function that is not immutable", updates_by_changing_function, "pass the value, or take excluded"
    ),
    Rule("a function that acts, over a table", acts_over_table, "gather the rows first, then call the function"),
    Rule("the whole row of a subquery", takes_whole_row, "name its columns, or build json of them"),
    Rule(
        "rows locked across tenants",
        locks_rows,
        "find the tenants, then lock inside each",
        of="statements across tenants",
    ),
    Rule(
        "join across tenants",
        joins_tables,
        "ask for the rows of each table, or of each tenant",
        of="statements across tenants",
    ),
    Rule("create extension", creates_extension, "write it in a do block that asks pg_extension first", of="migrations"),
)


# What is refused today: a statement by its file, a function by its name. What is mended is removed here.
KNOWN = {
    "a function that acts, over a table": """
        bus/kafka/sql/move_relay.sql execution/sql/count_calls.sql gateway/mcp/legacy/sql/listen.sql
        gateway/mcp/legacy/sql/renew_stream.sql gateway/mcp/legacy/sql/store_event.sql
        gateway/mcp/legacy/sql/take_up_stream.sql gateway/mcp/legacy/sql/touch_session.sql
        holdfast.declare_skills() holdfast.declare_tools() holdfast.delete_tools() holdfast.give_up_calls()
        holdfast.lapse_executions() holdfast.remove_agent() holdfast.settle_commands()
        holdfast.tell_nodes() holdfast.write_tools() memory/sql/forget.sql
    """,
    "create extension": "postgres/migrations/0001_foundation.sql",
    "insert … select that becomes a COPY": """
        gateway/mcp/legacy/sql/ask.sql gateway/mcp/legacy/sql/end_stream.sql gateway/mcp/legacy/sql/store_event.sql
        holdfast.ask_approval() holdfast.create_topic() holdfast.end_run() holdfast.fork_conversation()
        holdfast.keep_revision() holdfast.open_mcp_stream() holdfast.remember() holdfast.settle_commands()
        holdfast.store_run()
    """,
    "join across tenants": """
        bus/kafka/sql/group_progress.sql bus/kafka/sql/move_relay.sql bus/kafka/sql/unsent.sql
        bus/sql/command_gauges.sql bus/sql/group_gauges.sql bus/sql/topic_gauges.sql
        knowledge/sql/tenants_with_unembedded_chunks.sql memory/sql/forget_tombstones.sql
        memory/sql/scope_gauges.sql memory/sql/tenants_to_sweep.sql memory/sql/unindexed_tenants.sql
        quotas/sql/tenants_to_sweep.sql skills/sql/unindexed_registries.sql
    """,
    "the whole row of a subquery": "holdfast.remember() memory/sql/export.sql",
    "upsert by a function that is not immutable": """
        agents/sql/tell_served.sql bus/kafka/sql/move_relay.sql bus/sql/tell_presence.sql holdfast.append_in_run()
        holdfast.ask_approval() holdfast.assign_skill() holdfast.claim_commands() holdfast.join_group()
        holdfast.link_need() holdfast.link_tool() holdfast.reset_group() holdfast.set_secret() holdfast.write_agent()
        memory/sql/lease_indexing.sql skills/sql/lease_registry_indexing.sql
    """,
}


async def facts_of(owner: OwnerConnection) -> Facts:
    """What the catalogue of this database says."""
    rows = await owner.all(
        "select proname::text as name, array_agg(provolatile::text) as kinds from pg_proc group by 1"
    )
    kinds = {row["name"]: set(row["kinds"]) for row in rows}
    return Facts(
        frozenset(await tenant_tables(owner)),
        frozenset(name for name in kinds if "i" not in kinds[name]),
        frozenset(name for name in kinds if "v" in kinds[name]) - VALUES,
    )


async def functions(owner: OwnerConnection) -> list[tuple[str, str]]:
    """Name and body of each function in plpgsql."""
    rows = await owner.all(
        "select format('%s.%s()', pronamespace::regnamespace, proname) as name, prosrc as body from pg_proc "
        "where pronamespace = any('{public,holdfast}'::regnamespace[]) "
        "and prolang = (select oid from pg_language where lanname = 'plpgsql')"
    )
    return [(row["name"], row["body"]) for row in rows]


def refused(facts: Facts, texts: Iterable[tuple[str, str]]) -> list[str]:
    """Forms that a cluster refuses, in `.sql` files and, by their names, in bodies of functions."""
    return sorted(
        {
            f"{rule.name}: {name.removeprefix(PACKAGE)}; {rule.instead}"
            for name, text in texts
            for rule, statement in _read(name, text)
            if rule.breaks(statement, facts)
        }
    )


def _read(name: str, text: str) -> Iterator[tuple[Rule, Node]]:
    """The statements of a text, each with the rules that hold for it."""
    held = {"statements"} if name.endswith("()") or roles_of(name) else set[str]()
    if roles_of(name) == (SYSTEM,):
        held.add("statements across tenants")
    if "/migrations/" in name:
        held.add("migrations")
    read = statements_of_function if name.endswith("()") else statements
    yield from product([rule for rule in RULES if rule.of in held], read(text) if held else ())
