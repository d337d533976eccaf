import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements_plugin import Section, about, full_list, page
from tests.rules.tree import ROOT, plant

PYTEST = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "--quiet", "-p", "no:cacheprovider"]


def collect(tree: Path) -> subprocess.CompletedProcess[str]:
    options = ["-p", "tests.requirements_plugin", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tree)]
    return subprocess.run([*PYTEST, *options, str(tree)], cwd=ROOT, capture_output=True, text=True)


def test_the_plugin_is_in_use(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.pluginmanager.has_plugin("tests.requirements_plugin")


def test_the_page_is_current(tmp_path: Path) -> None:
    written = tmp_path / "requirements.md"

    run = subprocess.run(
        [*PYTEST, "-m", "", f"--requirements-page={written}"], cwd=ROOT, capture_output=True, text=True
    )

    assert run.returncode == 0, run.stdout + run.stderr
    committed = (ROOT / "docs" / "requirements.md").read_text("utf-8")
    assert committed == written.read_text("utf-8"), "docs/requirements.md is out of date: run `make docs`"


def test_a_known_id_is_collected(tmp_path: Path) -> None:
    plant(tmp_path, "test_it.py", 'import pytest\n\n@pytest.mark.req("ENG-01")\ndef test_it() -> None: ...\n')

    run = collect(tmp_path)

    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    "module",
    [
        'import pytest\n\n@pytest.mark.req("ENG-01", "ENG-99")\ndef test_it() -> None: ...\n',
        'import pytest\n\npytestmark = pytest.mark.req("ENG-99")\n\ndef test_it() -> None: ...\n',
    ],
)
def test_an_unknown_id_is_a_collection_error(tmp_path: Path, module: str) -> None:
    plant(tmp_path, "test_it.py", module)

    run = collect(tmp_path)

    assert run.returncode != 0
    assert "there is no requirement ENG-99" in run.stdout


SECTIONS = [Section("Engine", {"ENG-01": "It starts.", "ENG-02": "It lasts."})]


def test_the_page_has_a_line_for_each_requirement_with_its_main_test() -> None:
    tests = {"tests/test_b.py::test_b": 2, "tests/test_a.py::test_a": 1, "tests/acceptance/test_c.py::test_c": 1}

    text = page(SECTIONS, {"ENG-02": tests})

    assert "1 of 2 requirements have tests" in text
    assert text.endswith(
        "| ENG-01 | It starts. | 0 |  |\n| ENG-02 | It lasts. | 3 | `tests/acceptance/test_c.py::test_c` |\n"
    )


@pytest.mark.parametrize(("count", "shown"), [(0, "0"), (9, "9"), (10, "10+"), (49, "20+"), (50, "50+"), (999, "500+")])
def test_the_page_rounds_the_number_of_tests(count: int, shown: str) -> None:
    assert about(count) == shown


def test_the_list_has_every_test_of_a_requirement() -> None:
    tests = {"tests/test_b.py::test_b": 2, "tests/test_a.py::test_a": 1}

    assert full_list(SECTIONS, {"ENG-02": tests}) == (
        "ENG-01 It starts.\nENG-02 It lasts.\n  tests/test_a.py::test_a\n  tests/test_b.py::test_b\n"
    )
