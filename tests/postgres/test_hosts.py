"""An address with several hosts: one that hangs costs a short while, once."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import DatabaseAway, Unavailable
from holdfast.engine import open_engine
from holdfast.postgres.address import AVOIDED, Hosts, hosts_of
from holdfast.postgres.database import open_owner
from holdfast.postgres.options import Options

QUICK = Options(connect_timeout=30, host_timeout=0.5)


@pytest.fixture
async def hung() -> AsyncIterator[str]:
    """The place of a host that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def behind(url: str, *places: str) -> str:
    """The same address, with these hosts before its own."""
    own = urlsplit(url).netloc.rpartition("@")[2]
    return url.replace(f"@{own}/", f"@{','.join([*places, own])}/")


@pytest.mark.req("ENG-10")
async def test_a_host_that_hangs_is_passed_over_and_then_comes_last(remote_url: str, hung: str) -> None:
    url = behind(remote_url, hung)

    started = monotonic()
    async with open_owner(url, QUICK) as owner:
        first = await owner.value("select 1")
    passed = monotonic() - started
    # Now it is known: with more time for it than the test has, nobody waits for it.
    patient = Options(connect_timeout=600, host_timeout=600)
    async with asyncio.timeout(60):
        for _ in range(5):
            async with open_owner(url, patient) as owner:
                assert await owner.value("select 1") == 1

    assert first == 1
    assert passed >= 0.4


@pytest.mark.req("ENG-10")
async def test_an_engine_starts_and_works_behind_a_host_that_hangs(
    remote_url: str, hung: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flags = {"database.url": behind(remote_url, hung), "database.host_timeout": 0.5, "data": tmp_path / "data"}
    config = load_config(flags, environ={}, cwd=tmp_path)

    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(60), open_engine(config=config) as engine:
            found = await asyncio.gather(*(engine.database.now() for _ in range(20)))
            async with engine.postgres.listen("one") as wake:
                await wake.wait()

    assert len(found) == 20
    assert "does not respond; trying the next one" in caplog.text


async def test_a_closed_port_is_passed_over_and_a_refused_login_is_not(remote_url: str, hung: str) -> None:
    async with open_owner(behind(remote_url, "127.0.0.1:1"), QUICK) as owner:
        assert await owner.value("select 1") == 1
    password = str(urlsplit(remote_url).password)
    own = urlsplit(remote_url).netloc.rpartition("@")[2]
    wrong = behind(remote_url.replace(f":{password}@", ":guess@").replace(f"@{own}/", f"@{own},{hung}/"))
    with pytest.raises(Unavailable, match="rejected the login"):
        async with open_owner(wrong, QUICK):
            pass


async def test_where_no_host_answers_the_database_is_away(hung: str) -> None:
    with pytest.raises(DatabaseAway):
        async with open_owner(f"postgresql://x@{hung},{hung}/x", Options(connect_timeout=0.5, host_timeout=0.2)):
            pass


def test_a_host_that_failed_comes_last_and_is_tried_again_by_one(hung: str) -> None:
    hosts = Hosts(["a", "b", "c"])

    hosts.mark_failed("a", now=0)

    assert hosts.order(now=1) == ["b", "c", "a"]
    assert hosts.order(now=AVOIDED) == ["a", "b", "c"]  # one tries it
    assert hosts.order(now=AVOIDED) == ["b", "c", "a"]  # and nobody else
    hosts.mark_reachable("a")
    assert hosts.order(now=AVOIDED) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u:p@h/d", ["postgresql://u:p@h/d"]),
        ("postgresql://u:p@a:1,b:2/d?x=1", ["postgresql://u:p@a:1/d?x=1", "postgresql://u:p@b:2/d?x=1"]),
        ("postgresql://a,[::1]:2/d", ["postgresql://a/d", "postgresql://[::1]:2/d"]),
        ("postgresql:///d?host=a,b&port=1", ["postgresql:///d?host=a&port=1", "postgresql:///d?host=b&port=1"]),
        ("postgresql:///d?host=a,b&port=1,2", ["postgresql:///d?host=a&port=1", "postgresql:///d?host=b&port=2"]),
        ("postgresql:///d?host=/run", ["postgresql:///d?host=/run"]),
    ],
)
def test_an_address_names_one_host_or_several(url: str, each: list[str]) -> None:
    assert hosts_of(url).urls == each
