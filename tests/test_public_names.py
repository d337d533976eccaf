"""The public names of the package."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

pytestmark = pytest.mark.req("UI-05")

DECLARED = set(re.findall(r"import (\w+) as \1$", Path(holdfast.__file__).read_text("utf-8"), re.MULTILINE))


def test_dir_lists_the_public_names_and_each_can_be_used() -> None:
    listed = {name for name in dir(holdfast) if not name.startswith("_")}

    assert listed == DECLARED
    assert all(getattr(holdfast, name) is not None for name in listed)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'opne_engine'"):
        holdfast.opne_engine  # type: ignore[attr-defined] # noqa: B018


def test_the_package_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"holdfast \d+\.\d+\.\d+\S*\n", done.stdout)


def test_importing_the_program_s_module_runs_nothing() -> None:
    assert importlib.import_module("holdfast.__main__").main
