from pathlib import Path

import pytest

from holdfast.knowledge.parsing import code
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.units import Unit
from tests.knowledge.parsing.code_samples import PYTHON, SOURCES
from tests.rules.tree import ROOT

pytestmark = pytest.mark.req("KNOW-01")


def units(path: Path, language: str, first: int = 1) -> list[Unit]:
    return list(code.parse_language(path, language=language, first=first, limits=ParseLimits()))


def parts(path: Path, language: str) -> list[tuple[tuple[str, ...], str]]:
    return [(block.path, unit.text[block.start : block.end]) for unit in units(path, language) for block in unit.blocks]


@pytest.mark.parametrize("language", list(SOURCES))
def test_source_code_is_split_at_classes_and_functions(tmp_path: Path, language: str) -> None:
    source, paths = SOURCES[language]
    source = source.replace("LONG", "long " * 400 if language != "python" else "x = 1\n        " * 300)
    path = tmp_path / "a"
    path.write_text(source)

    found = parts(path, language)

    assert [each for each, _ in found] == paths
    assert "".join("".join(text.split()) for _, text in found) == "".join(source.split())


def test_comments_and_decorators_stay_with_what_they_are_about(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(PYTHON.replace("LONG", "..."))

    found = dict(parts(path, "python"))

    assert found["run",] == "# About run.\n@cache\ndef run():\n    def inner(): ..."
    assert found["Tea",].startswith("class Tea:")
    assert "def cup" in found["Tea",]  # a short class stays whole


@pytest.mark.parametrize("path", sorted((ROOT / "src/holdfast/memory").glob("*.py")), ids=lambda path: path.name)
def test_nothing_of_real_source_code_is_lost(path: Path) -> None:
    found = parts(path, "python")

    assert "".join("".join(text.split()) for _, text in found) == "".join(path.read_text().split())


def test_a_portion_is_the_same_from_wherever_a_read_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "".join(f"def function_{number}():\n    return {'1 + ' * 50}{number}\n\n\n" for number in range(1000))
    )

    found = units(path, "python")

    assert len(found) > 2
    assert units(path, "python", 2) == found[1:]


def test_without_the_extra_source_code_is_split_at_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "_parser", dict[str, object]().get)
    path = tmp_path / "a.py"
    path.write_text("import os\n\ndef run():\n    a = 1\n\n    return a\n\nclass Tea:\n    hot = True\n")

    assert parts(path, "python") == [
        ((), "import os"),
        (("run",), "def run():\n    a = 1\n\n    return a"),
        (("Tea",), "class Tea:\n    hot = True"),
    ]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("static int\nadd(int a) { return a; }", ()),
        ("struct tea { int hot; };", ("tea",)),
        ("CREATE OR REPLACE FUNCTION tea() RETURNS int", ("tea",)),
        ("pub fn brew() {}", ("brew",)),
        ("module Tea\n  def hot; end\nend", ("Tea",)),
        ("fun main() = 1", ("main",)),
        ("body { color: red }", ()),
    ],
)
def test_other_languages_have_the_names_that_their_lines_show(
    tmp_path: Path, source: str, path: tuple[str, ...]
) -> None:
    file = tmp_path / "a"
    file.write_text(source)

    (unit,) = code.parse(file, limits=ParseLimits())

    assert [block.path for block in unit.blocks] == [path]
    assert unit.text == source


@pytest.mark.parametrize("source", ["def f(:\n  ((((", "\x00\x01", "class " * 1000, "(" * 5000])
def test_invalid_source_code_is_read_as_it_is(tmp_path: Path, source: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(source)

    assert "".join("".join(text.split()) for _, text in parts(path, "python")) == "".join(
        source.replace("\0", "\ufffd").split()
    )
