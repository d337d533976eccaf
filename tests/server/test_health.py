from pathlib import Path
from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine, EnginePart, open_engine
from holdfast.server.server_file import ask_health
from tests.memory.without_models import without_models
from tests.server.conftest import running
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
    async def parts(_: Engine) -> list[EnginePart]:
        return [EnginePart("database", "ok", "fine"), EnginePart("words", "reduced", "no model")]

    monkeypatch.setattr(Engine, "parts", parts)

    reply = await site.ask("GET", "/readyz")

    assert (reply.status, reply.json()["state"]) == (200, "reduced")


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("settings", [{"require_key": True}])
async def test_details_of_parts_are_for_known_callers(site: Site, key: str, settings: dict[str, Any]) -> None:
    anybody = await site.ask("GET", "/readyz")
    wrong = await site.ask("GET", "/readyz", key="hf_wrong")
    known = await site.ask("GET", "/readyz", key=key)

    assert anybody.json() == wrong.json()
    assert [part.keys() for part in anybody.json()["parts"]] == [{"name", "state"}] * len(known.json()["parts"])
    assert "PostgreSQL" in known.json()["parts"][0]["detail"]


@pytest.mark.req("EMB-02")
async def test_without_a_model_it_is_ready_and_says_that_words_are_all_it_goes_by(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = without_models(config, tmp_path, monkeypatch)

    async with open_engine(config=config) as engine, running(engine, config) as site:
        reply = await site.ask("GET", "/readyz")

    (part,) = (part for part in reply.json()["parts"] if part["name"] == "embeddings")
    assert (reply.status, reply.json()["state"], part["state"]) == (200, "reduced", "reduced")
    assert "words only" in part["detail"]
    assert "holdfast models fetch" in part["detail"]


async def test_a_server_of_another_kind_is_not_taken_for_ours(site: Site) -> None:
    assert ask_health(f"{site.file.url}/api/openapi.json?x=") is None
