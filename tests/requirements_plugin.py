"""Links tests to requirements: `@pytest.mark.req("ENG-01")`.

An id that docs/requirements.toml does not have is a collection error. `--requirements-page=FILE` writes the page that
lists every requirement with the tests that carry it, as far as they were collected.
"""

import tomllib
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "docs" / "requirements.toml"


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


def page(sections: Iterable[Section], tests: Mapping[str, Iterable[str]]) -> str:
    """The Markdown page: per requirement its line and its tests."""
    sections = list(sections)
    ids = [key for section in sections for key in section.requirements]
    lines = [
        "# Requirements and their tests",
        "",
        "Written by `make docs` from `docs/requirements.toml` and the tests' marks; change those, not this page.",
        f"{sum(key in tests for key in ids)} of {len(ids)} requirements have tests; a test may prove a part only.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", ""]
        for key, line in section.requirements.items():
            lines.append(f"- **{key}** {line}")
            lines += [f"  - `{test}`" for test in sorted(set(tests.get(key, ())))]
    return "\n".join(lines) + "\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements-page", metavar="FILE", help="write the page of requirements and their tests")


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
    target = session.config.getoption("--requirements-page")
    if target is None:
        return
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for item in session.items:
        for key in _ids(item):
            tests[key].append(item.nodeid.partition("[")[0])
    Path(target).write_text(page(read_sections(), tests), "utf-8")


@cache
def _known() -> frozenset[str]:
    return frozenset(key for section in read_sections() for key in section.requirements)


def _ids(item: pytest.Item) -> list[str]:
    return [str(key) for mark in item.iter_markers("req") for key in mark.args]
