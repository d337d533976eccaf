"""User ids of programs: no two programs have the same at a time."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.core.errors import Unavailable
from holdfast.execution.sandbox import SandboxLimits, SandboxProcesses, Surroundings
from holdfast.execution.sandbox.user_ids import FOLDER, UserIds

pytestmark = pytest.mark.req("EXEC-03")


def test_an_id_that_is_lent_is_lent_to_nobody_else_in_any_process(tmp_path: Path) -> None:
    one, other = UserIds(range(3), [tmp_path]), UserIds(range(3), [tmp_path])

    with ExitStack() as stack:
        lent = [stack.enter_context(ids.lend()) for ids in (one, other, one)]
        with pytest.raises(Unavailable, match="no user id is free"):
            stack.enter_context(other.lend())
    with other.lend() as again:
        pass

    assert sorted(lent) == [0, 1, 2]
    assert again in {0, 1, 2}


def test_a_folder_of_locks_that_is_not_the_engines_own_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / FOLDER).symlink_to(tmp_path / "linked")

    with pytest.raises(Unavailable, match="cannot lock user ids"), UserIds(range(3), [tmp_path / "planted"]).lend():
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="as an ordinary user, programs have no ids of their own")
async def test_programs_of_two_engines_that_run_at_once_have_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.execution.sandbox.processes.UserIds", lambda: UserIds(range(60600, 60602)))
    one, other = SandboxProcesses(), SandboxProcesses()
    command, limits = ["/bin/bash", "-c", "echo $UID; read -r _"], SandboxLimits(seconds=30)
    found: list[bytes] = []

    for _ in range(3):
        async with (
            one.open(command, limits, Surroundings()) as first,
            other.open(command, limits, Surroundings()) as second,
        ):
            found.append(await first.stdout.readline() + await second.stdout.readline())

    assert {*found} <= {b"60600\n60601\n", b"60601\n60600\n"}
