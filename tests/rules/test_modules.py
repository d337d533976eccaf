from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules.modules import branches_on_constraint_names, buckets, built_statements, long_modules
from tests.rules.tree import ROOT, plant


@pytest.mark.parametrize("rule", [long_modules, buckets, built_statements, branches_on_constraint_names])
def test_every_module_keeps_the_rules(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


def test_a_module_over_700_lines_is_named_with_its_length(tmp_path: Path) -> None:
    plant(tmp_path, "src/holdfast/short.py", "x = 1\n" * 700)
    plant(tmp_path, "src/holdfast/long.py", "x = 1\n" * 701)

    violations = long_modules(tmp_path)

    assert len(violations) == 1
    assert violations[0].startswith("src/holdfast/long.py: 701 lines")


@pytest.mark.parametrize("name", ["core/utils.py", "helpers/text.py", "memory/manager.py", "models.py"])
def test_a_module_or_folder_named_as_a_bucket_is_refused(tmp_path: Path, name: str) -> None:
    plant(tmp_path, f"src/holdfast/{name}", "")

    violations = buckets(tmp_path)

    assert len(violations) == 1


@pytest.mark.parametrize(
    "argument",
    [
        'f"select * from {table}"',
        '"select * from " + table',
        '"select " + columns + " from node"',
        '"select * from %s" % table',
        '"select * from {}".format(table)',
        '" ".join(parts)',
    ],
)
def test_a_statement_put_together_from_strings_is_refused(tmp_path: Path, argument: str) -> None:
    plant(tmp_path, "src/holdfast/memory/search.py", f"rows = database.all({argument}, tenant)\n")

    violations = built_statements(tmp_path)

    assert len(violations) == 1
    assert violations[0].startswith("src/holdfast/memory/search.py:1:")


@pytest.mark.parametrize("argument", ['sql("search")', '"select 1"', 'f"select 1"', "statement"])
def test_a_constant_statement_is_allowed(tmp_path: Path, argument: str) -> None:
    plant(tmp_path, "src/holdfast/memory/search.py", f"rows = database.all({argument}, tenant)\n")

    assert built_statements(tmp_path) == []


def test_postgres_itself_may_put_statements_together(tmp_path: Path) -> None:
    plant(tmp_path, "src/holdfast/postgres/tenancy.py", 'database.run(f"create role {name}")\n')

    assert built_statements(tmp_path) == []


def test_a_branch_on_a_constraint_name_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, "src/holdfast/access/keys.py", 'taken = error.constraint_name == "key_pkey"\n')

    violations = branches_on_constraint_names(tmp_path)

    assert len(violations) == 1
