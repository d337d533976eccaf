"""The benchmarks run and keep their figures; how fast they find us is no matter of a test."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import Processes

BENCH = Path(__file__).parents[2] / "bench"
LONG = {"append", "import", "log", "memory", "read", "start", "tenancy", "turns"}  # what these do before they measure
SMALLEST = {"memory": ["--smallest"]}  # where a table is filled first
TOWNS = ("Oslo", "Rome", "Lima", "Kyoto", "Cairo", "Quito")


def benchmarks() -> list[Any]:
    """The names of all but one, which has a test of its own; those that take long are for `make soak`."""
    names = sorted(path.stem for path in BENCH.glob("*.py") if path.stem != "recall")
    return [pytest.param(name, marks=pytest.mark.soak if name in LONG else ()) for name in names]


@pytest.mark.acceptance
@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_runs_and_keeps_its_figures(name: str, tmp_path: Path, processes: Processes) -> None:
    options = ["--seconds", "0.2", "--results", str(tmp_path), *SMALLEST.get(name, ())]
    program = processes.start(str(BENCH / f"{name}.py"), *options)

    assert program.wait(timeout=600) == 0, program.stderr

    kept = json.loads((tmp_path / f"{name}.json").read_text())
    assert kept["figures"]
    assert kept["title"] in program.stdout
    assert kept["title"] in (tmp_path / f"{name}.md").read_text()


@pytest.mark.acceptance
@pytest.mark.req("MEM-04")
@pytest.mark.usefixtures("models")
def test_recall_is_measured_on_sets_like_the_published_ones(tmp_path: Path, processes: Processes) -> None:
    turns = [{"dia_id": f"D1:{n}", "speaker": "Ann", "text": f"I visited {town}"} for n, town in enumerate(TOWNS)]
    asked = [
        {"question": f"When was Ann in {town}?", "evidence": [f"D1:{n}"], "category": 2} for n, town in enumerate(TOWNS)
    ]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    messages = [
        {"mid": n, "message": f"我去过{town}", "time": "2024年04月01日 周一 08:30"} for n, town in enumerate("京沪渝")
    ]
    questions = [{"question": "我去过渝吗", "target_step_id": [2]}]
    (tmp_path / "locomo").mkdir()
    (tmp_path / "memdaily_zh").mkdir()
    (tmp_path / "locomo" / "locomo10.json").write_text(
        json.dumps([{"sample_id": "one", "conversation": talk, "qa": asked}])
    )
    (tmp_path / "memdaily_zh" / "01.json").write_text(
        json.dumps([{"tid": 1, "message_list": messages, "question_list": questions}])
    )

    program = processes.start(str(BENCH / "recall.py"), "--data", str(tmp_path), "--results", str(tmp_path))

    assert program.wait(timeout=600) == 0, program.stderr
    figures = json.loads((tmp_path / "recall.json").read_text())["figures"]
    assert {row["way"] for row in figures} >= {"exact vectors", "BM25", "memory.search"}
