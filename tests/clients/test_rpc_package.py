"""`@holdfast/rpc`, as it would be published."""

import json
from pathlib import Path

import pytest

from tests.clients.node import run
from tests.npm import NPM, modules_or_skip

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "clients" / "rpc"

pytestmark = pytest.mark.req("RPC-05")


def test_its_own_tests_pass() -> None:
    said = run("--test", "--test-reporter=tap", folder=PACKAGE)

    assert "# fail 0" in said
    assert "# pass 0" not in said


def test_its_types_take_what_they_promise_and_refuse_the_rest() -> None:
    typescript = modules_or_skip(HERE, "typescript")

    said = run(typescript / "typescript" / "bin" / "tsc", "--project", HERE, folder=HERE)

    assert said == ""


def test_what_is_published_is_the_module_with_its_types_and_nothing_else() -> None:
    (packed,) = json.loads(run(NPM, "pack", "--dry-run", "--json", "--offline", folder=PACKAGE))

    names = {file["path"] for file in packed["files"]}
    assert names == {"LICENSE", "README.md", "package.json", "rpc.d.ts", "rpc.js"}
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_it_needs_no_other_package() -> None:
    declared = json.loads((PACKAGE / "package.json").read_text("utf-8"))

    assert not [field for field in declared if field.lower().endswith("dependencies")]
    assert "\nimport " not in (PACKAGE / "rpc.js").read_text("utf-8").partition("*/")[2]
