from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules.modules import (
    KNOWN,
    branches_on_constraint_names,
    buckets,
    built_statements,
    doubled_classes,
    long_modules,
    participles,
    repeated_lines,
)
from tests.rules.tree import ROOT, beyond, plant

LINES = [f"total += cost({n})" for n in range(13)]


@pytest.mark.parametrize(
    "rule", [long_modules, buckets, built_statements, branches_on_constraint_names, repeated_lines]
)
def test_every_module_keeps_the_rules(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


def test_every_module_and_class_but_the_known_ones_is_named_by_the_rules() -> None:
    assert beyond(KNOWN, [*doubled_classes(ROOT), *participles(ROOT)]) == []


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


def test_a_class_name_with_two_meanings_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, "src/holdfast/agents/runs.py", "class Run: ...\nclass Runs: ...\n")
    plant(tmp_path, "src/holdfast/skills/run.py", "def make():\n    class Run: ...\n")

    violations = doubled_classes(tmp_path)

    assert len(violations) == 1
    assert "Run;" in violations[0]


@pytest.mark.parametrize("name", ["core/keeping.py", "memory/tool_matching.py", "postgres/embedded.py"])
def test_a_module_named_by_a_participle_or_gerund_is_refused(tmp_path: Path, name: str) -> None:
    plant(tmp_path, f"src/holdfast/{name}", "")
    plant(tmp_path, "src/holdfast/bus/kafka_feed.py", "")
    plant(tmp_path, "src/holdfast/core/settings.py", "")

    violations = participles(tmp_path)

    assert len(violations) == 1


@pytest.mark.parametrize("other", ["skills/cost.py", "agents/cost.py"])
def test_lines_that_stand_in_two_places_are_refused(tmp_path: Path, other: str) -> None:
    text = "\n".join(["def cost():", *(f"    {line}" for line in LINES)])
    again = "\n\n".join(["class Cost:", *(f"        {line}" for line in LINES), "# more"])
    plant(tmp_path, "src/holdfast/agents/cost.py", text)
    plant(tmp_path, f"src/holdfast/{other}", again if other.startswith("skills") else f"{text}\n{again}")

    violations = repeated_lines(tmp_path)

    assert len(violations) == 1


def test_twelve_lines_may_stand_in_two_places(tmp_path: Path) -> None:
    plant(tmp_path, "src/holdfast/agents/cost.py", "\n".join(LINES[:12]))
    plant(tmp_path, "src/holdfast/skills/cost.py", "\n".join(LINES[:12]))

    assert repeated_lines(tmp_path) == []


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
