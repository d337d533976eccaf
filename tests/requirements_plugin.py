"""Links tests to requirements: `@pytest.mark.req("ENG-01")`.

An id that docs/requirements.toml does not have is a collection error. `--requirements-page=FILE` writes a page with one
line per requirement, `--requirements-list=FILE` the tests of each requirement, as far as they were collected.
"""

import tomllib
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "docs" / "requirements.toml"
STEPS = (10, 20, 50, 100, 200, 500)  # numbers of tests that the page tells apart


@dataclass(frozen=True, slots=True)
class Section:
    """Requirements that belong together, by id."""

    title: str
    requirements: dict[str, str]


def read_sections(source: Path = SOURCE) -> list[Section]:
    """The requirements, in the order of the file."""
    tables: dict[str, dict[str, str]] = tomllib.loads(source.read_text("utf-8"))
    return [
        Section(table["title"], {key: line for key, line in table.items() if key != "title"})
        for table in tables.values()
    ]


def page(sections: Sequence[Section], tests: Mapping[str, Mapping[str, int]]) -> str:
    """The page: one line per requirement. `tests`: per id its tests, and how many ids each of them proves."""
    ids = [key for section in sections for key in section.requirements]
    lines = [
        "# Requirements and their tests",
        "",
        "`make docs` writes this page from `docs/requirements.toml` and the marks of the tests. It names the main test",
        "of each requirement; `pytest --collect-only -m '' --requirements-list=FILE` lists all of them.",
        f"{sum(key in tests for key in ids)} of {len(ids)} requirements have tests. A test may prove a part only.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", "| id | requirement | tests | main test |", "|---|---|---:|---|"]
        for key, line in section.requirements.items():
            found = tests.get(key, {})
            main = f"`{main_test(found)}`" if found else ""
            lines.append(f"| {key} | {line} | {about(len(found))} | {main} |")
    return "\n".join(lines) + "\n"


def full_list(sections: Sequence[Section], tests: Mapping[str, Mapping[str, int]]) -> str:
    """Every requirement with all of its tests."""
    lines: list[str] = []
    for section in sections:
        for key, line in section.requirements.items():
            lines += [f"{key} {line}", *(f"  {test}" for test in sorted(tests.get(key, {})))]
    return "\n".join(lines) + "\n"


def main_test(tests: Mapping[str, int]) -> str:
    """The test that shows most of a requirement: one that proves few others, and runs the product as users do."""
    return min(tests, key=lambda test: (tests[test], not test.startswith("tests/acceptance/"), test))


def about(count: int) -> str:
    """How many tests there are, roughly: the page changes with the requirements, not with every test."""
    return str(count) if count < STEPS[0] else f"{max(step for step in STEPS if step <= count)}+"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements-page", metavar="FILE", help="write the page of requirements: a line for each")
    parser.addoption("--requirements-list", metavar="FILE", help="write every requirement with all of its tests")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    unknown = [
        f"{item.nodeid}: there is no requirement {key}. Take an id of docs/requirements.toml, or add it there."
        for item in report.result or ()
        if isinstance(item, pytest.Item)
        for key in _ids(item)
        if key not in _known()
    ]
    if unknown:
        report.outcome = "failed"
        report.longrepr = "\n".join(unknown)
        report.result = []
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = [("--requirements-page", page), ("--requirements-list", full_list)]
    targets = [(file, write) for option, write in wanted if (file := session.config.getoption(option))]
    if not targets:
        return
    tests: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for item in session.items:
        ids = _ids(item)
        for key in ids:
            tests[key][item.nodeid.partition("[")[0]] = len(ids)
    for file, write in targets:
        Path(file).write_text(write(read_sections(), tests), "utf-8")


@cache
def _known() -> frozenset[str]:
    return frozenset(key for section in read_sections() for key in section.requirements)


def _ids(item: pytest.Item) -> list[str]:
    return [str(key) for mark in item.iter_markers("req") for key in mark.args]
