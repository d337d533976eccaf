import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

from holdfast.cli.init import FILES
from holdfast.cli.invocation import SHARED
from holdfast.cli.main import COMMANDS, program, run
from tests.cli.program import MODULE, Program

pytestmark = pytest.mark.req("UI-02")


def leaves(command: Any, context: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every command with its words, its module loaded."""
    if not isinstance(command, TyperGroup):
        return [(path, command)]
    found: list[tuple[tuple[str, ...], Any]] = []
    for name in command.list_commands(context):
        listed: Any = command.get_command(context, name)
        inner = listed.make_context(name, [], parent=context, resilient_parsing=True)
        found += leaves(inner.command, inner, (*path, name))
    return found


ROOT = program()
LEAVES = leaves(ROOT, ROOT.make_context("holdfast", [], resilient_parsing=True))


def test_help_names_every_command_and_loads_none_of_them(holdfast: Program) -> None:
    script = (
        "import sys; from holdfast.cli.main import run; run(['--help']);"
        "heavy = {'pydantic', 'asyncpg', 'starlette', 'uvicorn', 'msgspec', 'rich', 'holdfast.cli.up'};"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], env=holdfast.environment, capture_output=True, text=True)

    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert "loaded: []" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("words", [path for path, _ in LEAVES], ids=" ".join)
def test_a_command_explains_itself(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code = run([*words, "--help"])

    said = capsys.readouterr()
    assert code == 0
    assert said.out.startswith(f"Usage: holdfast {' '.join(words)} ")
    assert said.err == ""


@pytest.mark.parametrize(("words", "command"), LEAVES, ids=[" ".join(path) for path, _ in LEAVES])
def test_a_command_takes_the_shared_options(words: tuple[str, ...], command: Any) -> None:
    options = {parameter.name for parameter in command.params}

    assert {"json", "tenant", "data"} <= options
    assert {option.name for option in SHARED} <= options


def test_without_a_command_the_help_is_shown(holdfast: Program) -> None:
    done = holdfast()

    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: holdfast ")


def test_the_version_is_told(holdfast: Program) -> None:
    done = holdfast("--version")

    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("holdfast ")


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["tenant", "ls"],
            "No such command 'tenant'. Did you mean 'tenants'? `holdfast --help` shows how it is called.",
        ),
        (["keys"], "Missing command. `holdfast keys --help` shows how it is called."),
        (["up", "--prot", "1"], "--port"),
        (["up", "--port", "high"], "--port"),
        (["up", "--port", "70000"], "the setting server.port cannot be 70000"),
        (["tenants", "create"], "Missing argument 'NAME'"),
        (["keys", "revoke", "seven"], "'seven' is not an id"),
        (["keys", "create", "--expires", "soon"], "'soon' is not a lifetime"),
        (["completion", "tcsh"], "there is no completion for the shell 'tcsh'"),
        (["config", "show", "--data", "\udcff"], "the setting data cannot be"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_2(holdfast: Program, words: list[str], said: str) -> None:
    done = holdfast(*words)

    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.req("ENG-07")
def test_with_json_a_refusal_is_an_object_on_stderr(holdfast: Program) -> None:
    done = holdfast("keys", "create", "--expires", "soon", "--json")

    assert (done.code, done.stdout) == (2, "")
    assert done.error["code"] == "invalid_input"
    assert {"what", "why", "next", "details"} <= done.error.keys()


def test_what_follows_two_dashes_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    run(["config", "show", "--", "--json"])

    assert not capsys.readouterr().err.startswith("{")


def test_a_defect_is_told_shortly_and_in_full_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(_: Path) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("holdfast.cli.init.write_example", fail)

    codes = run(["init", str(tmp_path)]), run(["init", str(tmp_path), "--debug"])

    short, _, long = capsys.readouterr().err.partition("this is a defect.\n")
    assert codes == (1, 1)
    assert "ZeroDivisionError: by nothing" in short
    assert "Traceback" not in short
    assert "Traceback" in long


def test_an_interrupted_command_ends_with_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.init.write_example", interrupt)

    assert run(["init", str(tmp_path)]) == 130


def test_a_reader_that_goes_away_is_no_reason_to_complain(holdfast: Program) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    command = [*MODULE, "config", "show"]
    done = subprocess.run(command, env=holdfast.environment, stdout=writing, stderr=subprocess.PIPE, text=True)

    os.close(writing)
    assert done.stderr == ""


def test_a_terminal_that_cannot_show_a_character_is_no_reason_to_fail(holdfast: Program) -> None:
    done = holdfast("config", "show", environment={"PYTHONIOENCODING": "ascii", "HOLDFAST_TENANT": "näh"})

    assert done.code == 0
    assert "n\\xe4h" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(holdfast: Program, shell: str) -> None:
    done = holdfast("completion", shell)

    assert (done.code, done.stderr) == (0, "")
    assert "_HOLDFAST_COMPLETE" in done.stdout


def test_the_shell_s_own_completion_is_printed_by_default(holdfast: Program) -> None:
    done = holdfast("completion", "--json", environment={"SHELL": "/usr/bin/fish"})

    assert done.json["shell"] == "fish"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("holdfast ini", "init"),
        ("holdfast keys cr", "create"),
        ("holdfast --data x db back", "backup"),
        ("holdfast up --req", "--require-key"),
    ],
)
def test_bash_completes_commands_and_options(holdfast: Program, words: str, completed: str) -> None:
    script = holdfast.folder / "holdfast"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast.cli.main "$@"\n')
    script.chmod(0o755)
    ask = (
        f"source <(holdfast completion bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        '_holdfast_completion holdfast; echo "${COMPREPLY[*]}"'
    )
    path = os.pathsep.join([str(holdfast.folder), holdfast.environment["PATH"]])

    done = subprocess.run(
        ["bash", "-c", ask], env={**holdfast.environment, "PATH": path}, capture_output=True, text=True
    )

    assert done.stdout.split() == [completed], done.stderr


def test_the_example_has_no_file_that_is_not_packaged() -> None:
    import holdfast.cli

    folder = Path(holdfast.cli.__file__).parent / "example"

    assert {path.name for path in folder.iterdir()} == set(FILES.values())


def test_json_of_every_command_that_answers_at_once_can_be_read(holdfast: Program) -> None:
    for words in (["config", "show"], ["db", "url"], ["init", "example"]):
        done = holdfast(*words, "--json")
        assert done.code == 0
        assert json.loads(done.stdout)
        assert done.stderr == ""
