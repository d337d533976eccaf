import subprocess
import sys
from pathlib import Path

from holdfast.server.app import OPERATIONS
from tests.rules.operations import NOT_COMMANDS, named_operations
from tests.rules.tree import ROOT, plant

DECLARED = {operation.name for operation in OPERATIONS}


def test_the_operations_of_the_command_line_are_those_of_the_api() -> None:
    command = [sys.executable, "-m", "holdfast.server.operation_table"]
    written = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    kept = (ROOT / "src" / "holdfast" / "cli" / "operations.json").read_text("utf-8")

    assert kept == written, "src/holdfast/cli/operations.json is not what the API declares; run `make docs`"


def test_every_operation_is_a_command_or_has_a_reason_not_to_be_one() -> None:
    used = {operation for _, operation in named_operations(ROOT)}
    reasons = [operation for operations in NOT_COMMANDS.values() for operation in operations]

    assert len(reasons) == len(set(reasons))
    assert DECLARED - used - set(reasons) == set(), "make it a command, or say in NOT_COMMANDS why it is none"
    assert set(reasons) - (DECLARED - used) == set(), "it is a command, or no operation: remove it from NOT_COMMANDS"


def test_commands_name_only_declared_operations() -> None:
    unknown = [f"{where}: {operation}" for where, operation in named_operations(ROOT) if operation not in DECLARED]

    assert unknown == []


def test_operations_are_found_in_derived_and_in_written_commands(tmp_path: Path) -> None:
    text = 'derive(app, "ls", "list_topics", table({}))\nawait api.call("get_run", id=id)\nother("list_keys")\n'
    root = plant(tmp_path, "src/holdfast/cli/topics.py", text)

    assert [operation for _, operation in named_operations(root)] == ["list_topics", "get_run"]
