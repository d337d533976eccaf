"""The table of threats: every line of it names tests, and every test that it names is there."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gateway.md"
LINE = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
PROOF = re.compile(r"^(\d+)\. ((?:.+\n)(?: +.+\n)*)", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def threats() -> str:
    """The part of the page that is about threats."""
    return PAGE.read_text("utf-8").partition("## Threats")[2].partition("\n## ")[0]


@cache
def defined_in(file: str) -> frozenset[str]:
    """The names of the tests of a file."""
    path = ROOT / file
    nodes = ast.walk(ast.parse(path.read_text("utf-8"))) if path.is_file() else ()
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_threat_has_an_answer_and_tests_that_there_are() -> None:
    page = threats()

    numbers = [number for number, *_ in LINE.findall(page)]
    proofs = {number: NAMED.findall(tests) for number, tests in PROOF.findall(page)}

    assert len(numbers) >= 20
    assert numbers == [str(each) for each in range(1, len(numbers) + 1)] == list(proofs)
    assert sum(map(len, proofs.values())) == page.count("::test_")
    for number, named in proofs.items():
        assert named, number
        assert [name for file, name in named if name not in defined_in(file)] == [], number
