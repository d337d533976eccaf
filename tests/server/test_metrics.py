from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.bus.gauges import Gauges
from holdfast.core.config import Config
from holdfast.core.ids import uuid7
from holdfast.engine import Engine
from holdfast.execution.call_records import CallRecord
from holdfast.memory import organization, user
from tests.clock import Clock
from tests.memory.without_models import without_models
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

LABELS = ("tenant", "group", "topic", "skill", "state", "scope")

Sample = tuple[str, tuple[str, ...]]

pytestmark = pytest.mark.req("BUS-04")


@pytest.fixture
def config(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The settings of an engine that gives up at the first failure, and has no embedding model."""
    config = without_models(config, tmp_path, monkeypatch)
    return config.model_copy(update={"bus": config.bus.model_copy(update={"max_attempts": 1})})


def measured(reply: Reply) -> dict[Sample, float]:
    """What a monitoring system reads: each sample by its name and the values of its labels, in our order."""
    assert reply.status == 200, reply
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


async def fill(engine: Engine) -> None:
    """Four records of a topic: one that the group `billing` has read, one that it gave up, two that it has not read."""
    await engine.log.create("orders", partitions=1)
    for number in range(4):
        await engine.log.publish("orders", value=number)
    async with engine.log.subscribe(["orders"], group="billing") as records:
        done, failed = await records.batch(2)
        await records.commit(done)
        await records.fail(failed, "cannot do it")


async def test_records_rate_lag_age_and_dead_letters_are_told(
    engine: Engine, site: Site, key: str, clock: Clock
) -> None:
    await fill(engine)
    await clock.advance(timedelta(seconds=100))

    found = measured(await site.ask("GET", "/metrics", key=key))

    group = ("default", "billing", "orders")
    assert found["holdfast_topic_records_total", ("default", "orders")] == 4
    assert found["holdfast_topic_records_per_second", ("default", "orders")] == pytest.approx(0.04, rel=0.2)
    assert found["holdfast_group_lag", group] == 2
    assert found["holdfast_group_oldest_unread_seconds", group] == pytest.approx(100, abs=20)
    assert found["holdfast_dead_letters", group] == 1


async def test_a_group_that_has_read_all_waits_for_nothing(engine: Engine, site: Site, key: str) -> None:
    await fill(engine)
    await engine.log.reset("billing", "orders", end=True)

    found = measured(await site.ask("GET", "/metrics", key=key))

    group = ("default", "billing", "orders")
    assert found["holdfast_group_lag", group] == 0
    assert found["holdfast_group_oldest_unread_seconds", group] == 0


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_an_administrator_is_told_of_their_tenant_and_an_operator_of_all(
    engine: Engine, site: Site, key: str
) -> None:
    await engine.tenants.create("acme")
    await fill(engine)
    await fill(engine.tenant("acme"))
    administrator = await make_key(engine, "eve", tenant="acme")
    operator = await make_key(engine, "op", scopes=["operator"])
    user = await make_key(engine, "bob", scopes=["read", "write"])

    def tenants(found: dict[Sample, float]) -> set[str]:
        return {labels[0] for _, labels in found if labels}

    assert tenants(measured(await site.ask("GET", "/metrics", key=key))) == {"default"}
    assert tenants(measured(await site.ask("GET", "/metrics", key=administrator))) == {"acme"}
    assert tenants(measured(await site.ask("GET", "/metrics", key=operator))) == {"acme", "default"}
    refused = await site.ask("GET", "/metrics", key=user)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert (await site.ask("GET", "/metrics")).status == 401


async def test_on_this_machine_nobody_needs_a_key_until_there_is_one(engine: Engine, site: Site) -> None:
    await fill(engine)

    assert measured(await site.ask("GET", "/metrics"))["holdfast_topic_records_total", ("default", "orders")] == 4


async def test_there_are_never_more_series_than_the_bound(engine: Engine) -> None:
    for name in ("c", "a", "b"):
        await engine.log.create(name, partitions=1)
        async with engine.log.subscribe([name], group="g"):
            pass

    gauges = Gauges(engine.postgres.system, most=2)

    assert [gauge.topic for gauge in await gauges.topics()] == ["a", "b"]
    assert [gauge.topic for gauge in await gauges.groups()] == ["a", "b"]


@pytest.mark.parametrize("settings", [{"require_key": True}])
async def test_nothing_is_told_to_strangers(site: Site, settings: dict[str, Any]) -> None:
    refused = await site.ask("GET", "/metrics")

    assert (refused.status, refused.code) == (401, "unauthenticated")


@pytest.mark.req("EMB-02")
async def test_memories_are_counted_by_scope_and_those_without_a_vector_apart(
    engine: Engine, site: Site, key: str
) -> None:
    await engine.memory.remember_many(user("ann"), ["likes tea", "喜欢喝茶", "お茶が好きです"])
    await engine.memory.remember(organization(), "tea is at four")
    await engine.tenants.create("other")
    await engine.tenant("other").memory.remember(user("eve"), "likes rain")

    found = measured(await site.ask("GET", "/metrics", key=key))

    assert {labels: value for (name, labels), value in found.items() if name == "holdfast_memories"} == {
        ("default", "organization"): 1,
        ("default", "user"): 3,
    }
    # There is no model for Japanese: nothing is missing.
    assert {labels: value for (name, labels), value in found.items() if name == "holdfast_memories_unembedded"} == {
        ("default", "organization"): 1,
        ("default", "user"): 2,
    }


@pytest.mark.req("SAFE-07")
async def test_it_is_measured_for_how_long_an_entry_of_the_audit_waits_to_be_sealed(
    engine: Engine, site: Site, key: str
) -> None:
    name = "holdfast_audit_unsealed_seconds"
    await engine.tenants.create("other")
    before = measured(await site.ask("GET", "/metrics", key=key))
    async with engine.postgres.owner() as owner:
        await owner.script("revoke execute on function holdfast.seal_audit from holdfast_app")
        await owner.script(WAITING)

    after = measured(await site.ask("GET", "/metrics", key=key))
    of_operator = measured(await site.ask("GET", "/metrics", key=site.file.token))

    assert before[name, ("default",)] == 0
    assert 600 <= after[name, ("default",)] < 700
    assert (name, ("other",)) not in after
    assert of_operator[name, ("other",)] == 0


WAITING = """
insert into audit_open (tenant_id, id, at, entry)
select id, gen_random_uuid(), holdfast.now() - interval '10 minutes', '{}'
from tenant where name = 'default'
"""


@pytest.mark.req("EXEC-02")
async def test_calls_that_could_not_be_recorded_are_counted(
    engine: Engine, site: Site, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.call_records.MOST", 0)
    record = CallRecord(id=uuid7(), tool="look", status="done", began=0.0, ended=0.0)

    engine.call_records.add(engine.database, record)

    assert measured(await site.ask("GET", "/metrics", key=key))["holdfast_unrecorded_calls_total", ("default",)] == 1
