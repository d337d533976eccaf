import subprocess
import sys

import pytest

from tests.rules.tree import ROOT


@pytest.mark.req("UI-01")
def test_the_types_of_the_console_are_those_of_the_api() -> None:
    written = subprocess.run(
        [sys.executable, ROOT / "console" / "schema.py"], check=True, capture_output=True, text=True
    ).stdout

    kept = (ROOT / "console" / "src" / "api" / "schema.ts").read_text("utf-8")

    assert kept == written, "console/src/api/schema.ts is not what the API describes; run `make docs`"
