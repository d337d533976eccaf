import subprocess
import sys

import pytest

from tests.cli.program import MODULE, Program
from tests.processes import Process

pytestmark = pytest.mark.req("UI-02")


def test_the_example_runs(holdfast: Program) -> None:
    written = holdfast("init", "first")

    folder = holdfast.folder / "first"
    environment = {name: value for name, value in holdfast.environment.items() if name != "HOLDFAST_DATA"}
    done = subprocess.run([sys.executable, "app.py"], cwd=folder, env=environment, capture_output=True, text=True)

    assert (written.code, written.stdout) == (0, "")
    assert done.returncode == 0, done.stderr
    assert "  track {'parcel': 'AB-1'}\n" in done.stdout
    assert '"place":"Cologne"' in done.stdout
    assert "I live in Cologne." in done.stdout.partition("> Where do I live?\n")[2]
    assert (folder / "data" / "postgres").is_dir()


@pytest.mark.req("AGENT-03", "EDA-05")
def test_the_example_is_served(holdfast: Program) -> None:
    holdfast("init")
    server = Process([*MODULE, "up", "app.py", "--port", "0", "--json"], holdfast.environment, holdfast.folder)
    try:
        server.wait_for('"url"')

        answer = holdfast("chat", "support", "Where is the parcel AB-2?")
        label = holdfast("commands", "invoke", "label", "parcel=AB-1", "--json")
    finally:
        server.end()

    assert (answer.code, answer.stdout) == (0, 'track gave: {"parcel":"AB-2","place":"Bonn"}\n')
    assert label.json["completion"]["result"] == "[ AB-1 to Cologne ]"


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
    assert [path.name for path in holdfast.folder.iterdir() if path.name != ".cache"] == ["app.py"]
    assert mine.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told(holdfast: Program) -> None:
    (holdfast.folder / "file").touch()

    done = holdfast("init", "file/inside")

    assert done.code == 4
    assert "Choose another folder." in done.stderr
