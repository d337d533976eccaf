from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules.addresses import machine_paths, package_addresses
from tests.rules.tree import ROOT, plant

# Put together here, so that this file keeps the rules that it tests.
HOST = "pypi" + ".org"
OPTION = "--" + "index-url https://packages.example"
RESOLVED = '"res' + 'olved": "https://packages.example/a.tgz"'
ROOT_HOME = "/" + "root/data"
USER_HOME = "/" + "home/ann/data"


@pytest.mark.parametrize("rule", [package_addresses, machine_paths])
def test_every_file_of_the_project_keeps_the_rules(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


@pytest.mark.parametrize("text", [f"see https://{HOST}/simple", OPTION, RESOLVED])
def test_an_address_of_packages_is_refused(tmp_path: Path, text: str) -> None:
    plant(tmp_path, "requirements/base.txt", f"# a lock\n{text}\n")

    violations = package_addresses(tmp_path)

    assert len(violations) == 1
    assert violations[0].startswith("requirements/base.txt:2:")


@pytest.mark.parametrize("text", [f"data = '{ROOT_HOME}'", f"cd {USER_HOME}"])
def test_a_home_folder_is_refused(tmp_path: Path, text: str) -> None:
    plant(tmp_path, "docs/start.md", text)

    violations = machine_paths(tmp_path)

    assert len(violations) == 1


def test_the_place_of_the_project_itself_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, "docs/start.md", f"cd {tmp_path.as_posix()}/src")

    violations = machine_paths(tmp_path)

    assert len(violations) == 1


@pytest.mark.parametrize(
    "text", ["~/.local/share/holdfast", f"https://holdfast.example{USER_HOME}", f"GET /api{ROOT_HOME}"]
)
def test_other_paths_are_allowed(tmp_path: Path, text: str) -> None:
    plant(tmp_path, "docs/start.md", text)

    assert machine_paths(tmp_path) == []
