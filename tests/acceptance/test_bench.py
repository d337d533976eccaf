"""The benchmarks run and keep their figures; how fast they find us is no matter of a test."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.processes import Processes

BENCH = Path(__file__).parents[2] / "bench"
# What these do before they measure takes long.
LONG = {"append", "graph", "import", "ingest", "log", "memory", "read", "start", "tenancy", "turns"}
SMALLEST = {"memory": ["--smallest"]}  # where a table is filled first
WITH_DATA = {"knowledge", "parsers", "recall"}  # these have tests of their own
TOWNS = ("Oslo", "Rome", "Lima", "Kyoto", "Cairo", "Quito")


def benchmarks() -> list[Any]:
    """The names of those that need no data; those that take long are for `make soak`."""
    names = sorted(path.stem for path in BENCH.glob("*.py") if path.stem not in WITH_DATA)
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


@pytest.mark.acceptance
@pytest.mark.req("KNOW-01")
def test_parsers_are_measured_against_what_files_should_become(tmp_path: Path, processes: Processes) -> None:
    page = tmp_path / "html"
    (page / "sources").mkdir(parents=True)
    (page / "groundtruth").mkdir()
    (page / "sources" / "tea.html").write_text(
        "<h1>Tea</h1><p>Ann drinks tea.</p><table><tr><td>Oslo</td></tr></table>"
    )
    (page / "groundtruth" / "tea.html.md").write_text("# Tea\n\nAnn drinks tea.\n\n| Oslo |\n|---|\n")

    program = processes.start(str(BENCH / "parsers.py"), "--data", str(tmp_path), "--results", str(tmp_path))

    assert program.wait(timeout=600) == 0, program.stderr
    figures = json.loads((tmp_path / "parsers.json").read_text())["figures"]
    assert (figures["html"]["recall"], figures["html"]["precision"]) == (1.0, 1.0)


@pytest.mark.acceptance
@pytest.mark.soak(minutes=3)
@pytest.mark.req("KNOW-02")
@pytest.mark.usefixtures("models")
def test_search_in_documents_is_measured_beside_its_legs(tmp_path: Path, processes: Processes) -> None:
    for folder in ("2wiki", "cmrc2018", "chunking/corpora"):
        (tmp_path / "knowledge" / folder).mkdir(parents=True)
    passages = [{"title": town, "text": f"{town} is a town. Its mayor is Mayor {n}."} for n, town in enumerate(TOWNS)]
    asked = [{"question": f"Who is the mayor of {town}?", "gold_titles": [town]} for town in TOWNS]
    wiki = tmp_path / "knowledge" / "2wiki"
    (wiki / "corpus.json").write_text(json.dumps(passages))
    (wiki / "questions.json").write_text(json.dumps(asked))
    paragraphs = [
        {"context": f"{town}是一座城市。", "qas": [{"question": f"{town}是什么", "id": town}]} for town in "京沪渝"
    ]
    chinese = {"data": [{"title": "城市", "paragraphs": paragraphs}]}
    (tmp_path / "knowledge" / "cmrc2018" / "dev.json").write_text(json.dumps(chinese))
    text = "# Tea\n\nAnn drinks tea.\n"
    chunking = tmp_path / "knowledge" / "chunking"
    (chunking / "corpora" / "tea.md").write_text(text)
    gold = json.dumps([{"content": "Ann drinks tea.", "start_index": 7, "end_index": 22}]).replace('"', '""')
    (chunking / "questions.csv").write_text(f'question,references,corpus_id\nWhat does Ann drink?,"{gold}",tea\n')

    program = processes.start(
        str(BENCH / "knowledge.py"), "--data", str(tmp_path), "--quick", "--results", str(tmp_path)
    )

    assert program.wait(timeout=900) == 0, program.stderr
    figures = json.loads((tmp_path / "knowledge.json").read_text())["figures"]
    assert {row["set"] for row in figures} >= {"2Wiki", "CMRC 2018"}
