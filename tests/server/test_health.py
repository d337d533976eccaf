from typing import Any

import pytest

from holdfast.engine import Engine, Part
from holdfast.server.server_file import ask_health
from tests.server.wire import Site


async def test_the_server_lives_without_a_database(engine: Engine, site: Site) -> None:
    await engine.postgres.close()

    alive = await site.ask("GET", "/healthz")
    ready = await site.ask("GET", "/readyz")

    assert alive.json()["state"] == "alive"
    assert ready.status == 503
    assert ready.json() == {"state": "down", "parts": [{"name": "database", "state": "down"}]}


async def test_a_part_that_is_reduced_does_not_make_the_engine_unready(
    engine: Engine, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def parts(_: Engine) -> list[Part]:
        return [Part("database", "ok", "fine"), Part("words", "reduced", "no model")]

    monkeypatch.setattr(Engine, "parts", parts)

    reply = await site.ask("GET", "/readyz")

    assert (reply.status, reply.json()["state"]) == (200, "reduced")


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("settings", [{"require_key": True}])
async def test_details_of_parts_are_for_known_callers(site: Site, key: str, settings: dict[str, Any]) -> None:
    anybody = await site.ask("GET", "/readyz")
    wrong = await site.ask("GET", "/readyz", key="hf_wrong")
    known = await site.ask("GET", "/readyz", key=key)

    assert anybody.json() == wrong.json() == {"state": "ok", "parts": [{"name": "database", "state": "ok"}]}
    assert "PostgreSQL" in known.json()["parts"][0]["detail"]


async def test_a_server_of_another_kind_is_not_taken_for_ours(site: Site) -> None:
    assert ask_health(f"{site.file.url}/api/openapi.json?x=") is None
