"""Programs in the sandbox: their streams, their end, and what they leave."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import uvloop

from holdfast.core.errors import Unavailable
from holdfast.execution.sandbox import SandboxLimits, SandboxProcesses, Surroundings, launcher
from holdfast.execution.sandbox.languages import find_interpreter
from tests.execution.sandbox.conftest import Started

pytestmark = pytest.mark.req("EXEC-03")

PATIENCE = 30
PYTHON = sys.executable
BASH = "/bin/bash"
LIMITS = SandboxLimits(seconds=PATIENCE)


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[SandboxProcesses]:
    """Programs, whose work folders are in a folder that is empty at the end."""
    folder = tmp_path / "work"
    folder.mkdir()
    tmp_path.chmod(0o755)
    folder.chmod(0o755)
    yield SandboxProcesses(folder)
    assert list(folder.iterdir()) == []


async def output(
    processes: SandboxProcesses, *command: str, limits: SandboxLimits = LIMITS, **surroundings: object
) -> str:
    own = Surroundings(**surroundings)  # pyright: ignore[reportArgumentType]
    async with asyncio.timeout(PATIENCE), processes.open(command, limits, own) as process:
        process.stdin.close()
        out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
        await process.wait()
    return (out + err).decode()


def _running(word: str) -> list[psutil.Process]:
    """Processes with a word on their command line."""
    return [each for each in psutil.process_iter(["cmdline"]) if word in (each.info["cmdline"] or ())]


async def test_a_long_running_program_answers_on_its_pipes_until_it_is_left(
    processes: SandboxProcesses, started: Started
) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        processes.open([BASH, "-c", "cat"], SandboxLimits(seconds=None), Surroundings()) as cat,
    ):
        for line in (b"one\n", b"two\n"):
            cat.stdin.write(line)
            assert await cat.stdout.readline() == line
        running = started()

    assert len(running) >= 2
    psutil.wait_procs(running, timeout=PATIENCE)
    assert not any(process.is_running() for process in running)


async def test_an_ending_says_the_exit_code_the_time_and_the_memory(processes: SandboxProcesses) -> None:
    async with processes.open([BASH, "-c", "exit 7"], LIMITS, Surroundings()) as process:
        ending = await process.wait()

    assert (ending.exit_code, ending.reason) == (7, None)
    assert 0 < ending.cpu_seconds < PATIENCE
    assert ending.memory_bytes > 100_000


async def test_a_program_that_is_killed_says_so(processes: SandboxProcesses) -> None:
    async with processes.open([BASH, "-c", "sleep 1000"], LIMITS, Surroundings()) as process:
        process.kill()
        ending = await process.wait()

    assert (ending.exit_code, ending.reason) == (-9, "stopped")


async def test_a_program_that_does_not_exist_cannot_be_started(processes: SandboxProcesses) -> None:
    with pytest.raises(Unavailable, match="/nowhere/program cannot be run: No such file"):
        await output(processes, "/nowhere/program")


async def test_a_limit_of_the_machine_that_is_lower_than_the_sandboxs_remains() -> None:
    program = f"""
import asyncio, resource
from pathlib import Path
from holdfast.execution.sandbox import *
async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    async with SandboxProcesses().open(["{BASH}", "-c", "ulimit -n"], SandboxLimits(), Surroundings()) as p:
        print((await p.stdout.read()).decode())
asyncio.run(main())
"""

    engine = await asyncio.create_subprocess_exec(PYTHON, "-c", program, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(PATIENCE):
        said, _ = await engine.communicate()

    assert said.split() == [b"100"]


async def test_a_step_of_the_jail_that_fails_is_told(
    processes: SandboxProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SandboxLimits, "rlimits", [(1000, 1)])  # there is no such limit

    with pytest.raises(Unavailable, match="the jail cannot be set up: ValueError"):
        await output(processes, BASH, "-c", ":")


def test_a_process_whose_name_is_no_text_is_counted() -> None:
    name = "import ctypes, sys; ctypes.CDLL(None).prctl(15, bytes([255, 254]), 0, 0, 0); print(flush=True); input()"
    with subprocess.Popen([PYTHON, "-c", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as strange:
        assert strange.stdout is not None
        strange.stdout.readline()

        assert launcher.own_threads() >= 2

        strange.kill()


async def test_a_file_may_have_the_name_of_the_temporary_folder(processes: SandboxProcesses) -> None:
    read = await output(
        processes, BASH, "-c", "cat tmp; echo; echo ok > $TMPDIR/file; cat tmp_/file", files={"tmp": b"x"}
    )

    assert read == "x\nok\n"


async def test_a_work_folder_that_cannot_be_made_is_told(
    processes: SandboxProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("holdfast.execution.sandbox.work_folder.WorkFolder._fill", refuse)

    with pytest.raises(Unavailable, match="cannot make a work folder") as refused:
        await output(processes, BASH, "-c", ":")

    assert "Operation not permitted" in refused.value.why


async def test_a_program_sees_its_own_files_and_no_others(processes: SandboxProcesses, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    secret.chmod(0o644)
    files = {"data/notes.txt": b"a note", "run.sh": b"#!/bin/bash\necho it runs\n"}

    read = await output(
        processes,
        *(BASH, "-c", f"cat data/notes.txt; ./run.sh; echo more > new.txt; cat new.txt; cat {secret}"),
        files=files,
        executable=frozenset({"run.sh"}),
    )

    assert read.startswith("a noteit runs\nmore\n")
    assert "Permission denied" in read
    assert "the secret" not in read


async def test_a_program_reads_and_writes_the_folders_that_it_is_given(
    processes: SandboxProcesses, tmp_path: Path
) -> None:
    given, taken = tmp_path / "given", tmp_path / "taken"
    for folder in (given, taken):
        folder.mkdir()
        folder.chmod(0o777)
    (given / "page").write_text("a page")
    (given / "page").chmod(0o644)

    read = await output(
        processes,
        *(BASH, "-c", f"cat {given}/page; echo x > {given}/other; echo done > {taken}/result"),
        readable=[given],
        writable=[taken],
    )

    assert read.startswith("a page")
    assert "Permission denied" in read
    assert not (given / "other").exists()
    assert (taken / "result").read_text() == "done\n"


async def test_a_program_has_only_the_environment_that_it_is_given(
    processes: SandboxProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_PLANTED", "the secret")

    read = await output(processes, "/usr/bin/env", environment={"TOKEN": "given"})

    names = {line.partition("=")[0] for line in read.splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG", "TOKEN"}
    assert "TOKEN=given" in read


@pytest.mark.parametrize(("network", "refused"), [(False, True), (True, False)])
async def test_a_program_connects_only_if_it_has_the_network(
    processes: SandboxProcesses, network: bool, refused: bool
) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        read = await output(
            processes, BASH, "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected", network=network
        )

    assert ("connected" not in read) == refused


async def test_a_program_with_the_network_reads_certificates_and_no_folder_of_private_keys(
    processes: SandboxProcesses,
) -> None:
    places = "/etc/ssl /etc/ssl/private /etc/pki /etc/pki/tls /etc/pki/tls/private /etc/ssl/certs"

    read = await output(
        processes,
        *(BASH, "-c", f"for place in {places}; do ls $place >/dev/null 2>&1 && echo $place; done"),
        network=True,
    )

    assert read.splitlines() == [place for place in ("/etc/ssl/certs",) if Path(place).is_dir()]


async def test_a_program_that_cannot_watch_files_is_told_so(processes: SandboxProcesses) -> None:
    code = "try { require('fs').watch('.') } catch (error) { console.log(error.code) }; console.log('it goes on')"
    node = str(find_interpreter("javascript", {}).program)

    assert await output(processes, node, "-e", code) == "ENOSYS\nit goes on\n"


async def test_orphans_that_have_ended_do_not_count_as_processes(processes: SandboxProcesses) -> None:
    limits = SandboxLimits(seconds=PATIENCE, processes=16)

    # A busy machine may let 16 of them live at once: Bash says so and tries again.
    script = "exec 2>/dev/null; for i in {1..200}; do (true & ); done; echo finished"
    said = await output(processes, BASH, "-c", script, limits=limits)

    assert said == "finished\n"


async def test_tables_of_pages_count_as_memory(processes: SandboxProcesses) -> None:
    code = """
import mmap
held = mmap.mmap(-1, 100 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
while True:
    for place in range(0, 100 << 30, 2 << 20):
        held[place]
"""
    limits = SandboxLimits(seconds=PATIENCE, memory_mb=128)

    async with processes.open([str(find_interpreter("python", {}).program), "-c", code], limits, Surroundings()) as big:
        ending = await big.wait()

    assert ending.reason == "memory"


async def test_processes_that_a_program_leaves_behind_end_with_it(processes: SandboxProcesses) -> None:
    mark = f"1000.{os.getpid()}"

    read = await output(
        processes, BASH, "-c", f"for i in 1 2 3; do (trap '' HUP TERM; sleep {mark}) & done; echo begun"
    )

    assert read == "begun\n"
    assert _running(mark) == []


async def test_a_program_that_is_left_by_a_cancelled_caller_ends(processes: SandboxProcesses, started: Started) -> None:
    begun = asyncio.Event()

    async def call() -> None:
        async with processes.open([BASH, "-c", "echo begun; sleep 1000"], LIMITS, Surroundings()) as process:
            await process.stdout.readline()
            begun.set()
            await process.wait()

    calling = asyncio.create_task(call())
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        running = started()
        calling.cancel()
        await asyncio.wait([calling])

    assert calling.cancelled()
    assert len(running) >= 2
    assert not any(process.is_running() for process in running)


async def test_what_a_program_has_started_ends_when_its_launcher_is_killed(
    processes: SandboxProcesses, started: Started
) -> None:
    mark = f"1001.{os.getpid()}"
    command = [BASH, "-c", f"(trap '' HUP TERM; echo begun; exec sleep {mark}) & wait"]

    async with asyncio.timeout(PATIENCE), processes.open(command, SandboxLimits(seconds=None), Surroundings()) as lost:
        assert await lost.stdout.readline() == b"begun\n"
        started()[0].kill()
        rest = await lost.stdout.read()  # ends when nothing holds it open
        with pytest.raises(Unavailable, match="launcher of the sandbox has ended"):
            await lost.wait()

    assert rest == b""
    assert _running(mark) == []


@pytest.mark.parametrize("pause", [0.0, 0.002, 0.01, 0.05])
async def test_a_call_that_is_cancelled_early_leaves_no_folder(processes: SandboxProcesses, pause: float) -> None:
    files = {f"folder-{number}/file": b"x" * 100_000 for number in range(200)}

    calling = asyncio.create_task(output(processes, BASH, "-c", "sleep 1000", files=files))
    await asyncio.sleep(pause)
    calling.cancel()
    await asyncio.wait([calling])

    assert calling.cancelled()  # the fixture looks for folders


async def test_a_program_ends_when_the_engine_is_killed(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from holdfast.execution.sandbox import *
async def main():
    command, limits = ["/bin/bash", "-c", "echo begun; sleep 1000"], SandboxLimits(seconds=None)
    async with SandboxProcesses(Path({str(tmp_path)!r})).open(command, limits, Surroundings()) as p:
        print((await p.stdout.readline()).decode(), flush=True)
        await p.wait()
asyncio.run(main())
"""
    tmp_path.chmod(0o755)
    engine = await asyncio.create_subprocess_exec(PYTHON, "-c", program, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(PATIENCE):
        assert engine.stdout is not None
        assert await engine.stdout.readline() == b"begun\n"
        running = psutil.Process(engine.pid).children(recursive=True)

        engine.kill()
        await engine.wait()
        gone, left = await asyncio.to_thread(psutil.wait_procs, running, PATIENCE)

    assert len(gone) >= 2
    assert (left, list(tmp_path.iterdir())) == ([], [])


async def test_programs_leave_no_descriptors(processes: SandboxProcesses) -> None:
    await output(processes, BASH, "-c", ":")
    before = {each.name for each in Path("/proc/self/fd").iterdir()}

    for _ in range(5):
        await output(processes, BASH, "-c", "echo $$")

    assert {each.name for each in Path("/proc/self/fd").iterdir()} <= before


async def test_a_program_that_is_killed_while_it_ends_still_reports(processes: SandboxProcesses) -> None:
    for _ in range(10):
        async with processes.open([BASH, "-c", "echo end"], LIMITS, Surroundings()) as process:
            await process.stdout.read()
            process.kill()
            process.kill()
            ending = await process.wait()

        assert (ending.exit_code, ending.reason) in ((0, None), (0, "stopped"), (-9, "stopped"))


def test_the_end_of_an_output_is_seen_in_the_event_loop_of_the_server_too() -> None:
    async def run() -> str:
        async with asyncio.timeout(PATIENCE):
            return await output(SandboxProcesses(), BASH, "--norc", "-c", "cat; echo done")

    assert uvloop.run(run()) == "done\n"
