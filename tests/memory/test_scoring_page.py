"""The page on scoring: its example runs, and its table adds up."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rules.tree import ROOT

PAGE = (ROOT / "docs/scoring.md").read_text("utf-8")


@pytest.mark.req("MEM-12")
@pytest.mark.usefixtures("models")
def test_the_worked_example_prints_what_the_page_says(fast_folder: Path, tmp_path: Path) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    environment = {**os.environ, "HOLDFAST_DATA": str(fast_folder / tmp_path.name)}

    done = subprocess.run([sys.executable, "-c", example], env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    printed = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert [content for _, content in printed] == [content for content, _, _ in rows()]
    for (score, _), (_, _, said) in zip(printed, rows(), strict=True):
        # The last digits of an int8 model differ from processor to processor.
        assert float(score) == pytest.approx(said, abs=0.03)


@pytest.mark.req("MEM-12")
def test_the_rows_of_the_worked_example_add_up() -> None:
    assert len(rows()) == 5
    for _, parts, score in rows():
        assert sum(parts) == pytest.approx(score, abs=0.005)


def rows() -> list[tuple[str, list[float], float]]:
    """The table of the page: what was found, the parts, and the score."""
    found = re.findall(r"^\| ([^|*\n]+?) \|([-.|\d ]+)\| \*\*([-.\d]+)\*\* \|$", PAGE, re.MULTILINE)
    return [(content, [float(part) for part in parts.split("|")], float(score)) for content, parts, score in found]
