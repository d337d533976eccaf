import subprocess
import sys

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("UI-02")


def test_the_example_runs(holdfast: Program) -> None:
    written = holdfast("init", "first")

    folder = holdfast.folder / "first"
    environment = {name: value for name, value in holdfast.environment.items() if name != "HOLDFAST_DATA"}
    done = subprocess.run([sys.executable, "app.py"], cwd=folder, env=environment, capture_output=True, text=True)

    assert (written.code, written.stdout) == (0, "")
    assert done.returncode == 0, done.stderr
    assert "database is ok: embedded PostgreSQL" in done.stdout
    assert "acme's ann is " in done.stdout
    assert (folder / "data" / "postgres").is_dir()


def test_the_example_s_settings_are_the_ones_in_force(holdfast: Program) -> None:
    holdfast("init")
    del holdfast.environment["HOLDFAST_DATA"]

    shown = {row["key"]: row for row in holdfast("config", "show", "--json").json}

    assert shown["data"]["value"] == str(holdfast.folder / "data")
    assert shown["server.port"]["origin"] == f"holdfast.toml {holdfast.folder / 'holdfast.toml'}"


def test_nothing_is_overwritten_and_then_nothing_is_written(holdfast: Program) -> None:
    mine = holdfast.folder / "app.py"
    mine.write_text("mine")

    done = holdfast("init", "--json")

    assert done.code == 5
    assert done.error["code"] == "already_exists"
    assert "app.py" in done.error["what"]
    assert [path.name for path in holdfast.folder.iterdir()] == ["app.py"]
    assert mine.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told(holdfast: Program) -> None:
    (holdfast.folder / "file").touch()

    done = holdfast("init", "file/inside")

    assert done.code == 4
    assert "Choose another folder." in done.stderr
