from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules.locks import stale_locks, unhashed_pins
from tests.rules.tree import ROOT, plant

PIN = "asyncpg==0.30.0 \\\n    --hash=sha256:00\n    # via holdfast\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project that keeps the rules."""
    plant(tmp_path, "pyproject.toml", '[project]\ndependencies = ["asyncpg>=0.30"]\n')
    plant(tmp_path, "requirements/base.in", "# nothing more\n")
    plant(tmp_path, "requirements/base.txt", PIN)
    plant(tmp_path, "requirements/dev.in", "")
    return plant(tmp_path, "requirements/dev.txt", PIN)


@pytest.mark.parametrize("rule", [unhashed_pins, stale_locks])
def test_the_locks_keep_the_rules(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


@pytest.mark.parametrize("rule", [unhashed_pins, stale_locks])
def test_a_complete_lock_is_allowed(tree: Path, rule: Callable[[Path], list[str]]) -> None:
    assert rule(tree) == []


@pytest.mark.parametrize("line", ["rich==15.0.0\n", "rich>=15 \\\n    --hash=sha256:00\n", "-e .\n"])
def test_a_line_without_version_or_hash_is_refused(tree: Path, line: str) -> None:
    plant(tree, "requirements/bench-peer.txt", PIN + line)

    violations = unhashed_pins(tree)

    assert len(violations) == 1
    assert violations[0].startswith("requirements/bench-peer.txt: ")


@pytest.mark.parametrize("dependency", ["asyncpg>=0.31", "rich>=13"])
def test_a_dependency_that_the_locks_do_not_hold_is_refused(tree: Path, dependency: str) -> None:
    plant(tree, "pyproject.toml", f'[project]\ndependencies = ["{dependency}"]\n')

    violations = stale_locks(tree)

    assert len(violations) == 2  # base, and dev, which holds base
    assert dependency in violations[0]


def test_a_tool_that_the_lock_does_not_hold_is_refused(tree: Path) -> None:
    plant(tree, "requirements/dev.in", "ruff\n")

    violations = stale_locks(tree)

    assert len(violations) == 1
    assert violations[0].startswith("requirements/dev.txt: ")
