from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules.statements import (
    FORBIDDEN,
    OWN_CLOCK,
    forbidden_forms,
    other_clocks,
    telling_notifications,
    unexplained,
)
from tests.rules.tree import ROOT, plant

REASON = "-- memory/sql/one.sql: one memory.\n"
VIOLATIONS = {
    "trigger on a table": "create or replace trigger touch before update on node for each row execute function touch()",
    "merge": "merge into node using incoming on true when matched then delete",
    "copy": "begin\n  copy node from stdin;\nend",
    "on delete set null": "alter table node add foreign key (tenant_id, parent) references node ON DELETE\n  SET NULL",
    "function in the language sql": "create function one() returns int language sql as $$ select 1 $$",
    "serial column": "create table node (id bigserial)",
    "identity of 32 bits or less": "create table node (id uuid, n integer not null generated always as identity)",
    "branch on a constraint's name": "get stacked diagnostics broken = constraint_name",
    "version by xmin": "select xmin from node",
    "vector cast through text": "select id from memory order by vector <=> $1::text::halfvec",
    "session-level advisory lock": "select pg_advisory_lock(1)",
    "policy with a subquery": "create policy own on node using (tenant_id in (select id from tenant))",
    "policy that forgives a missing tenant": (
        "create policy own on node using (tenant_id = current_setting('holdfast.tenant', true)::uuid)"
    ),
}
ALLOWED = [
    "create function half(n float8) returns float8 language sql immutable as $$ select n / 2 $$",
    "create trigger written instead of insert on notes for each row execute function write_note()",
    "create table node (tenant_id uuid, n bigint generated always as identity, size integer)",
    "create policy own on node using (tenant_id = current_setting('holdfast.tenant')::uuid)",
    "select pg_advisory_xact_lock(1)",
    "select 1 -- no merge into, no xmin, no serial",
    "select '-- it''s text', 1 /* copy\n xmin */",
]


@pytest.mark.parametrize("rule", [forbidden_forms, other_clocks, telling_notifications, unexplained])
def test_every_statement_keeps_the_rules(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


@pytest.mark.parametrize("name", [rule.name for rule in FORBIDDEN])
def test_a_forbidden_form_is_found_where_it_stands(tmp_path: Path, name: str) -> None:
    plant(tmp_path, "src/holdfast/memory/sql/one.sql", REASON + VIOLATIONS[name])

    violations = forbidden_forms(tmp_path)

    assert len(violations) == 1
    assert violations[0].startswith("src/holdfast/memory/sql/one.sql:")
    assert name in violations[0]


@pytest.mark.parametrize("statement", ALLOWED)
def test_what_resembles_a_forbidden_form_is_allowed(tmp_path: Path, statement: str) -> None:
    plant(tmp_path, "src/holdfast/memory/sql/one.sql", REASON + statement)

    assert forbidden_forms(tmp_path) == []


@pytest.mark.parametrize("text", ["", "select 1\n", "--\nselect 1\n", "-- one.sql\nselect 1\n"])
def test_a_statement_without_its_reason_is_refused(tmp_path: Path, text: str) -> None:
    plant(tmp_path, "src/holdfast/memory/sql/one.sql", text)

    violations = unexplained(tmp_path)

    assert len(violations) == 1


@pytest.mark.parametrize(
    "clock",
    ["now()", "NOW ()", "pg_catalog.now()", "current_timestamp", "clock_timestamp()", "localtimestamp", "'now'::date"],
)
def test_a_clock_that_no_test_can_move_is_found(tmp_path: Path, clock: str) -> None:
    plant(tmp_path, "src/holdfast/memory/sql/one.sql", f"{REASON}select id from memory where expires_at < {clock}")

    violations = other_clocks(tmp_path)

    assert len(violations) == 1
    assert violations[0].startswith("src/holdfast/memory/sql/one.sql:2: ")


def test_a_file_that_may_ask_a_clock_may_do_so_in_one_place_only(tmp_path: Path) -> None:
    file = next(file for file, part in OWN_CLOCK if part.startswith("current_setting"))
    text = (ROOT / file).read_text("utf-8") + "create table planted (made_at timestamptz default now());\n"
    plant(tmp_path, file, text)

    violations = other_clocks(tmp_path)

    assert len(violations) == 1


@pytest.mark.parametrize("statement", ["select holdfast.now()", "select 1 -- not now()", "select known(1) as now"])
def test_the_clock_that_a_test_can_move_is_allowed(tmp_path: Path, statement: str) -> None:
    plant(tmp_path, "src/holdfast/memory/sql/one.sql", REASON + statement)

    assert other_clocks(tmp_path) == []


def test_every_leave_to_ask_a_clock_is_in_use() -> None:
    assert [(file, part) for file, part in OWN_CLOCK if part not in (ROOT / file).read_text("utf-8")] == []


@pytest.mark.req("SAFE-02")
@pytest.mark.parametrize(
    "statement",
    [
        "select pg_notify('holdfast_x', $1::uuid::text)",
        "select PG_NOTIFY ( 'holdfast_x' , 'told' )",
        "begin perform pg_notify('holdfast_x', new.id::text); end",
    ],
)
def test_a_notification_that_says_something_is_found(tmp_path: Path, statement: str) -> None:
    plant(tmp_path, "src/holdfast/memory/sql/one.sql", REASON + statement)
    plant(tmp_path, "src/holdfast/memory/sql/two.sql", REASON + "select pg_notify('holdfast_x', '')")

    assert len(telling_notifications(tmp_path)) == 1
