"""The embedded PostgreSQL and its holder know nothing of the environment that they were started from."""

from pathlib import Path

import psutil
import pytest

from holdfast.postgres.database import open_owner
from holdfast.postgres.embedded import EmbeddedServer
from holdfast.postgres.options import Options
from tests.processes import servers_on

SECRETS = {"PGPASSWORD": "of-another-server", "OPENAI_API_KEY": "sk-canary", "HOLDFAST_SECRET": "canary" * 8}


@pytest.mark.req("SAFE-03", "ENG-02")
async def test_no_secret_of_the_environment_reaches_the_server(
    fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    data = fast_folder / "clean"

    with EmbeddedServer(data) as server:
        async with open_owner(server.url, Options()) as owner:
            await owner.script("create temp table said (line text); copy said from program 'env'")
            said = {row["line"].partition("=")[0] for row in await owner.all("select line from said")}
        around = [psutil.Process(pid).environ() for pid in servers_on(data)]

    assert "PATH" in said
    assert not SECRETS.keys() & said
    assert len(around) > 1
    assert not [environment for environment in around if SECRETS.keys() & environment.keys()]
