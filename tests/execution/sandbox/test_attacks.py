"""The attacks on the sandbox: none succeeds in it, and they do succeed without it."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.core.errors import Unavailable
from holdfast.execution.sandbox import ProcessEnding, SandboxLimits, SandboxProcesses, Surroundings
from holdfast.execution.sandbox.attack_result import AttackResult
from holdfast.execution.sandbox.attacks import HEAVY, QUICK, run_attacks
from holdfast.execution.sandbox.languages import LANGUAGES, Interpreter, Language, find_interpreter
from holdfast.execution.sandbox.probe import SandboxProbe
from holdfast.execution.sandbox.sandbox import Sandbox, SandboxResult
from tests.execution.sandbox.conftest import Started

pytestmark = pytest.mark.req("EXEC-03")

PATIENCE = 60
READING = {  # attacks that leave their target as it was, and so do not spoil the next one
    "read a system file",
    "read a secret file",
    "list a folder",
    "watch a folder",
    "escape by a symbolic link",
    "escape by a relative path",
    "connect by TCP",
    "send by UDP",
    "connect to a Unix socket",
    "send to a Unix socket by a pair",
    "connect to an abstract socket",
    "listen on a port",
    "read devices",
    "use inherited descriptors",
    "keep memory without a file",
    "reach files through /proc",
    "read the environment of the engine",
    "share memory by a device",
    "open a file without a mode",
}


FILTERS = {  # by file: where the program makes its attacks, and what makes only some of them
    "attack.py": ("quick() if", "QUICK = {{name: QUICK[name] for name in QUICK if name in {names}}}\nquick() if"),
    "attack.js": ("Object.entries(quick)", "Object.entries(quick).filter(([name]) => {names}.includes(name))"),
    "attack.sh": ("attack() {{", 'attack() {{\n  [[ \'{names}\' == *"\\"$1\\""* ]] || return 0'),
}


class Unprotected(Sandbox):
    """Runs programs as they are, except for the attacks that would harm this machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SandboxProcesses())
        self._folder = folder

    async def run(
        self, command: Sequence[str], *, limits: SandboxLimits, surroundings: Surroundings, stdin: bytes = b""
    ) -> SandboxResult:
        """Run it without any protection."""
        [(name, content)] = (surroundings.files or {}).items()
        if command[-1] != name:
            return SandboxResult(b"", b"", ProcessEnding(1, None, 0, 0, 0), None)
        place, harmless = (each.format(names=json.dumps(sorted(READING))) for each in FILTERS[name])
        assert place in content.decode()
        (self._folder / name).write_text(content.decode().replace(place, harmless, 1))
        environment = {"PATH": os.defpath, **(surroundings.environment or {})}
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self._folder, env=environment, stdout=asyncio.subprocess.PIPE, close_fds=False
        )
        said, _ = await process.communicate()
        missing = [name for attacks in QUICK.values() for name in attacks if name not in READING]
        return SandboxResult(
            said + "".join(f"{name}\tblocked\t-\n" for name in missing).encode(),
            b"",
            ProcessEnding(0, None, 0, 0, 0),
            None,
        )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_attack_succeeds_in_the_sandbox(language: Language) -> None:
    async with asyncio.timeout(2 * PATIENCE):
        results = await run_attacks(Sandbox(SandboxProcesses()), find_interpreter(language, {}))

    assert [result for result in results if result.outcome != "blocked"] == []
    assert len({result.attack for result in results}) == len(results) == 60
    assert {result.group for result in results} == {*QUICK, *HEAVY}


@pytest.mark.parametrize("version", [1, 5])
async def test_no_attack_succeeds_with_an_older_landlock(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.execution.sandbox.processes.landlock_version", lambda: version)

    async with asyncio.timeout(2 * PATIENCE):
        results = await run_attacks(Sandbox(SandboxProcesses()), find_interpreter("python", {}))

    assert [result for result in results if result.outcome != "blocked"] == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_attacks_succeed_without_the_sandbox(language: Language, tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        results = await run_attacks(Unprotected(tmp_path), find_interpreter(language, {}))

    assert {result.attack for result in results if result.succeeds} == READING
    assert {result.outcome for result in results if result.group in HEAVY} <= {"not made", "blocked"}


@pytest.mark.parametrize("language", ["javascript", "bash"])
async def test_an_attack_whose_program_is_missing_is_not_made(language: Language) -> None:
    class Bare(Sandbox):
        async def run(
            self, command: Sequence[str], *, limits: SandboxLimits, surroundings: Surroundings, stdin: bytes = b""
        ) -> SandboxResult:
            files = {
                name: content.replace(b"prlimit", b"no-prlimit") for name, content in (surroundings.files or {}).items()
            }
            surroundings = replace(surroundings, files=files)
            return await super().run(command, limits=limits, surroundings=surroundings, stdin=stdin)

    async with asyncio.timeout(2 * PATIENCE):
        results = await run_attacks(Bare(SandboxProcesses()), find_interpreter(language, {}))

    assert [result.attack for result in results if result.outcome == "not made"] == ["limit the engine"]
    assert not any(result.succeeds for result in results)


async def test_an_attack_that_succeeds_refuses_scripts_of_the_language(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    probe = SandboxProbe(Unprotected(folder), tmp_path / "verdicts.json", {})

    with pytest.raises(Unavailable) as refused:
        await probe.check("python")

    assert refused.value.what == "scripts in python are refused"
    assert "does not stop an attack on this machine: read a system file" in refused.value.why
    assert "holdfast doctor" in refused.value.next


async def test_a_verdict_is_remembered_until_the_interpreter_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def count(_: Sandbox, interpreter: Interpreter) -> list[AttackResult]:
        tried.append(str(interpreter.program))
        return [AttackResult("files", "read a secret file", True, "Permission denied")]

    monkeypatch.setattr("holdfast.execution.sandbox.attacks.run_attacks", count)
    python = tmp_path / "python"
    python.write_text("")
    file, sandbox = tmp_path / "verdicts.json", Sandbox(SandboxProcesses())

    for _ in range(2):
        await SandboxProbe(sandbox, file, {"python": str(python)}).check("python")
    os.utime(python, (1, 1))
    again = SandboxProbe(sandbox, file, {"python": str(python)})
    before = again.known("python")
    await again.check("python")

    assert before is None
    assert tried == 2 * [str(python)]


async def test_runs_leave_no_process_file_or_descriptor(tmp_path: Path, started: Started) -> None:
    await leaves_nothing(tmp_path, 50, started)


@pytest.mark.soak(minutes=3)
async def test_a_thousand_runs_leave_no_process_file_or_descriptor(tmp_path: Path, started: Started) -> None:
    await leaves_nothing(tmp_path, 1000, started)


async def leaves_nothing(folder: Path, count: int, started: Started) -> None:
    """Run so many scripts, four at a time. Each leaves a process, files, folders and open descriptors behind."""
    messy = "mkdir -p a/b; echo x > a/b/c; chmod 0 a/b; (trap '' HUP TERM; sleep 1000) & exec 9> left; echo $1"
    sandbox, places = Sandbox(SandboxProcesses(folder)), asyncio.Semaphore(4)

    async def run(number: int) -> bytes:
        async with places:
            command = ["/bin/bash", "-c", messy, "messy", str(number)]
            return (
                await sandbox.run(command, limits=SandboxLimits(seconds=PATIENCE), surroundings=Surroundings())
            ).stdout

    await run(0)
    descriptors = {each.name for each in Path("/proc/self/fd").iterdir()}

    printed = await asyncio.gather(*map(run, range(count)))

    assert [int(each) for each in printed] == [*range(count)]
    assert list(folder.iterdir()) == []
    assert started() == []
    assert {each.name for each in Path("/proc/self/fd").iterdir()} <= descriptors
