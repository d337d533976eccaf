"""What a former server left on a data folder."""

from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from holdfast.postgres.former_server import end_orphans

pytestmark = pytest.mark.req("ENG-02")


class EndedProcess:
    """A process between its end and its disappearance: it has no command line any more."""

    def __init__(self) -> None:
        self.info = {"name": "postgres"}

    def parent(self) -> None: ...

    def cmdline(self) -> list[str]:
        return []


def test_a_process_that_has_just_ended_is_no_orphan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waited: list[object] = []

    def processes(_: Sequence[str]) -> list[EndedProcess]:
        return [EndedProcess()]

    def wait(orphans: Sequence[object], timeout: float) -> tuple[list[object], list[object]]:
        waited.extend(orphans)
        return [], []

    monkeypatch.setattr(psutil, "process_iter", processes)
    monkeypatch.setattr(psutil, "wait_procs", wait)

    end_orphans(tmp_path)

    assert waited == []
