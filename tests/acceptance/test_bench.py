"""The benchmarks run and keep their figures; how fast they find us is no matter of a test."""

import json
from pathlib import Path

import pytest

from tests.processes import Processes

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.acceptance
@pytest.mark.parametrize("name", sorted(path.stem for path in BENCH.glob("*.py")))
def test_a_benchmark_runs_and_keeps_its_figures(name: str, tmp_path: Path, processes: Processes) -> None:
    program = processes.start(str(BENCH / f"{name}.py"), "--seconds", "0.2", "--results", str(tmp_path))

    assert program.wait(timeout=180) == 0, program.stderr

    kept = json.loads((tmp_path / f"{name}.json").read_text())
    assert kept["figures"]
    assert kept["title"] in program.stdout
    assert kept["title"] in (tmp_path / f"{name}.md").read_text()
