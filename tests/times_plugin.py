"""Where the time of a test run goes: `--times FILE` writes a table of the folders and the slowest tests."""

import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SLOWEST = 25  # tests that are listed
CPU = "python_cpu"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="write where the time of this run went, as a table")


def pytest_configure(config: pytest.Config) -> None:
    file: str | None = config.getoption("--times")
    if file is not None:
        config.pluginmanager.register(CpuTimes())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Times(Path(file)))


class CpuTimes:
    """Adds to each report how much CPU time the test process took since the report before."""

    def __init__(self) -> None:
        self._before = time.process_time()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = time.process_time()
        report.user_properties.append((CPU, now - self._before))
        self._before = now
        return report


@dataclass(slots=True)
class Folder:
    """What the tests of one folder took, in seconds."""

    tests: int = 0
    phases: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    cpu: float = 0.0

    @property
    def seconds(self) -> float:
        """All phases."""
        return sum(self.phases.values())


class Times:
    """Collects the durations of all tests, whichever process ran them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began = time.monotonic()
        self._folders: dict[str, Folder] = defaultdict(Folder)
        self._tests: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = self._folders[str(Path(report.nodeid.partition("::")[0]).parent)]
        folder.tests += report.when == "call"
        folder.phases[report.when] += report.duration
        # The last is of this phase: reports of a test share the list.
        folder.cpu += [value for name, value in report.user_properties if name == CPU and isinstance(value, float)][-1]
        self._tests[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(table(self._folders, self._tests, time.monotonic() - self._began))


def table(folders: Mapping[str, Folder], tests: Mapping[str, float], seconds: float) -> str:
    """The page that is written."""
    lines = [
        "# Where the time of `make test` goes",
        "",
        f"{sum(folder.tests for folder in folders.values())} tests in {seconds / 60:.1f} minutes.",
        "Seconds are those of all test processes together. CPU is that of the test processes alone: without that of",
        "PostgreSQL, Kafka, browsers and programs that tests start.",
        "",
        "| folder | tests | seconds | set-up | test | tear-down | CPU |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, folder in sorted(folders.items(), key=lambda item: -item[1].seconds):
        phases = [f"{folder.phases[phase]:.0f}" for phase in ("setup", "call", "teardown")]
        lines.append(f"| {name} | {folder.tests} | {folder.seconds:.0f} | {' | '.join(phases)} | {folder.cpu:.0f} |")
    lines += ["", "| the slowest tests | seconds |", "|---|---:|"]
    lines += [f"| {name} | {took:.1f} |" for name, took in sorted(tests.items(), key=lambda item: -item[1])[:SLOWEST]]
    return "\n".join(lines) + "\n"
