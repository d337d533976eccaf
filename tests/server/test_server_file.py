import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine
from holdfast.postgres.folder import DataFolder
from holdfast.server.server_file import ServerFile
from tests.server.conftest import running
from tests.server.wire import Site


def planted(data: Path, file: ServerFile) -> Path:
    path = DataFolder(data).server_file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode(file))
    return path


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.req("SAFE-03")
async def test_a_running_server_is_found_and_its_token_is_for_its_account_alone(site: Site, config: Config) -> None:
    path = DataFolder(config.data).server_file

    found = await asyncio.to_thread(ServerFile.read, config.data)

    assert found == site.file
    assert site.file.pid == os.getpid()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_server_that_has_ended_leaves_no_file(engine: Engine, config: Config) -> None:
    async with running(engine, config):
        assert DataFolder(config.data).server_file.exists()

    assert not DataFolder(config.data).server_file.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_damaged_file_is_no_server(tmp_path: Path, content: bytes) -> None:
    DataFolder(tmp_path).server_file.write_bytes(content)

    assert ServerFile.read(tmp_path) is None


async def test_a_file_that_was_left_behind_is_no_server(site: Site, tmp_path: Path) -> None:
    planted(tmp_path, msgspec.structs.replace(site.file, pid=ended_pid()))

    assert await asyncio.to_thread(ServerFile.read, tmp_path) is None


async def test_a_file_whose_pid_and_port_others_have_now_is_no_server(site: Site, tmp_path: Path) -> None:
    planted(tmp_path, msgspec.structs.replace(site.file, token="of a server before this one"))

    assert await asyncio.to_thread(ServerFile.read, tmp_path) is None


async def test_a_file_that_was_left_behind_is_replaced(engine: Engine, config: Config) -> None:
    stale = ServerFile.new("http://127.0.0.1:1", config.data)
    planted(config.data, stale)

    async with running(engine, config) as site:
        assert await asyncio.to_thread(ServerFile.read, config.data) == site.file


async def test_the_file_of_a_second_server_neither_replaces_nor_removes_the_first(
    engine: Engine, config: Config, site: Site
) -> None:
    async with running(engine, config) as second:
        during = await asyncio.to_thread(ServerFile.read, config.data)
    after = await asyncio.to_thread(ServerFile.read, config.data)

    assert second.port != site.port
    assert during == after == site.file
