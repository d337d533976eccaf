import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.app_loader import load_app
from holdfast.core.errors import HoldfastError, InvalidInput

pytestmark = pytest.mark.req("ENG-07", "UI-02")

TWO = """
from dataclasses import dataclass

import holdfast

app = same = holdfast.App()
other = holdfast.App()
answer = 42


@app.skill("one")
async def one() -> None: ...


@dataclass
class Inner:
    app: holdfast.App


inner = Inner(app)
"""
ONE = "import helpers\n\nimport holdfast\n\napp = again = holdfast.App()\napp.agent(helpers.NAME)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with modules whose names nothing else has; what is loaded is forgotten afterwards."""
    (tmp_path / "shop_two.py").write_text(TWO)
    (tmp_path / "shop_one.py").write_text(ONE)
    (tmp_path / "helpers.py").write_text("import shop_one\n\nNAME = 'talker'\n")
    (tmp_path / "shop_none.py").write_text("answer = 42\n")
    (tmp_path / "shop_broken.py").write_text("import missing\n")
    (tmp_path / "shop_wrong.py").write_text("1 / 0\n")
    (tmp_path / "shop_quits.py").write_text("import sys\n\nsys.exit(0)\n")
    (tmp_path / "json.py").write_text(ONE.replace("import helpers\n", "").replace("helpers.NAME", "'reader'"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["shop_two:app", "shop_two:inner.app", "shop_two.py:app", "{folder}/shop_two.py:app"])
def test_an_app_is_found_by_its_name(folder: Path, name: str) -> None:
    app = load_app(name.format(folder=folder))

    assert set(app.skills) == {"one"}


@pytest.mark.parametrize("name", ["shop_one", "shop_one.py", "./shop_one.py"])
def test_the_only_app_of_a_module_needs_no_name(folder: Path, name: str) -> None:
    app = load_app(name)

    assert set(app.agents) == {"talker"}


def test_a_file_may_be_elsewhere_and_import_its_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)

    app = load_app(f"{folder.name}/shop_one.py")

    assert set(app.agents) == {"talker"}


def test_a_file_may_be_called_like_a_library(folder: Path) -> None:
    app = load_app("json.py")

    assert set(app.agents) == {"reader"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'' names no app"),
        (":app", "':app' names no app"),
        ("shop_two:", "'shop_two:' names no app"),
        ("nowhere:app", "there is no module nowhere"),
        ("nowhere.py", "there is no file nowhere.py"),
        ("shop_two.inner:app", "there is no module shop_two.inner"),
        ("shop_two", "shop_two has 3 apps: they are app, other, same. Name one, such as shop_two:app."),
        ("shop_none.py", "shop_none.py has no app"),
        ("shop_two:application", "shop_two has no application"),
        ("shop_two:answer", "shop_two:answer is not a holdfast.App: it is a int"),
        ("shop_broken:app", "shop_broken cannot be loaded: ModuleNotFoundError: No module named 'missing'"),
        ("shop_broken.py", "shop_broken.py cannot be loaded: ModuleNotFoundError: No module named 'missing'"),
        ("shop_wrong", "shop_wrong cannot be loaded: ZeroDivisionError"),
    ],
)
def test_an_app_that_cannot_be_had_is_told(folder: Path, name: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_app(name)

    assert said in str(refused.value)


def test_a_module_that_ends_the_program_is_told(folder: Path) -> None:
    with pytest.raises(HoldfastError, match=r"ends the program when it is loaded: it calls sys.exit\(0\)"):
        load_app("shop_quits")
