import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.config import Config, load_config
from holdfast.core.errors import BadSetting, PortTaken
from holdfast.engine import Engine
from holdfast.server.port import ServerAddress, address_of, bind
from tests.server.conftest import running
from tests.server.wire import Site


def settings_for(data: Path, **server: Any) -> Config:
    return load_config(
        {"data": data, **{f"server.{name}": value for name, value in server.items()}}, environ={}, cwd=data
    )


def test_port_0_picks_a_free_one(tmp_path: Path) -> None:
    with bind(settings_for(tmp_path, port=0)) as listener:
        address = address_of(listener)

    assert address.port > 0
    assert address.is_loopback
    assert address.url == f"http://127.0.0.1:{address.port}"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_the_newer_kind_of_address_can_be_used(tmp_path: Path) -> None:
    with bind(settings_for(tmp_path, host="::1", port=0)) as listener:
        address = address_of(listener)

    assert address.is_loopback
    assert address.url == f"http://[::1]:{address.port}"


def test_a_server_on_all_addresses_is_reached_on_loopback() -> None:
    assert ServerAddress("0.0.0.0", 80).url == "http://127.0.0.1:80"
    assert ServerAddress("::", 80).url == "http://[::1]:80"
    assert not ServerAddress("0.0.0.0", 80).is_loopback


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.1", "127.0.0.1:80", "a" * 300])
def test_an_address_that_this_machine_does_not_have_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadSetting, match="--host") as refused:
        bind(settings_for(tmp_path, host=host, port=0))

    assert refused.value.details["key"] == "server.host"


@pytest.mark.req("ENG-07")
def test_a_taken_port_is_refused_with_the_process_that_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(PortTaken, match="--port") as refused:
            bind(settings_for(tmp_path, port=port))

    assert refused.value.details == {"port": port, "pid": os.getpid()}
    assert f"process {os.getpid()} listens on it" in refused.value.why
    assert "holdfast " not in refused.value.why.partition("(")[0]


def test_a_port_is_taken_as_soon_as_it_is_bound(tmp_path: Path) -> None:
    with bind(settings_for(tmp_path, port=0)) as first, pytest.raises(PortTaken):
        bind(settings_for(tmp_path, port=first.getsockname()[1]))


async def test_a_port_taken_by_the_server_of_the_same_data_folder_is_named_so(site: Site, config: Config) -> None:
    with pytest.raises(PortTaken) as refused:
        await asyncio.to_thread(bind, settings_for(config.data, port=site.port))

    assert refused.value.why.startswith("holdfast ")
    assert f"data folder {config.data}" in refused.value.why
    assert refused.value.details["pid"] == site.file.pid


async def test_a_port_taken_by_another_server_of_ours_is_named_so(
    engine: Engine, config: Config, tmp_path: Path
) -> None:
    async with running(engine, config) as site:
        with pytest.raises(PortTaken) as refused:
            await asyncio.to_thread(bind, settings_for(tmp_path, port=site.port))

    assert "a holdfast" in refused.value.why
