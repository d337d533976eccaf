from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from holdfast.engine import Engine
from tests.clock import Clock
from tests.server.conftest import make_key
from tests.server.wire import Reply, Site

TOPICS = "/api/topics"
RECORDS = "/api/topics/orders/records"
EXAMPLE = UUID("019a0000-0000-7000-8000-000000000001")


@pytest.fixture
async def orders(engine: Engine) -> list[int]:
    """The topic `orders` with three partitions and a record for each of nine keys; how many each partition has."""
    await engine.log.create("orders", partitions=3)
    counts = [0, 0, 0]
    for number in range(9):
        record = await engine.log.publish("orders", key=f"k{number}", value={"n": number})
        counts[record.partition] += 1
    assert all(counts)
    return counts


async def replay(site: Site, key: str, query: str = "") -> dict[str, Any]:
    reply = await site.ask("GET", f"{RECORDS}?{query}", key=key)
    assert reply.status == 200, reply
    return reply.json()


def numbers(page: dict[str, Any]) -> list[int]:
    return [record["value"]["n"] for record in page["records"]]


@pytest.mark.req("BUS-01", "BUS-04")
async def test_a_topic_is_made_published_on_listed_and_removed(site: Site, key: str) -> None:
    made = await site.ask("POST", TOPICS, key=key, json={"name": "orders", "partitions": 2})
    again = await site.ask("POST", TOPICS, key=key, json={"name": "orders"})
    sent = {"key": "ann", "value": {"text": "nul\0 half \ud83d"}, "headers": {"a": "b"}, "id": str(EXAMPLE)}
    published = await site.ask("POST", RECORDS, key=key, json=sent)
    (listed,) = (await site.ask("GET", TOPICS, key=key)).json()["topics"]
    page = await replay(site, key)
    removed = await site.ask("DELETE", f"{TOPICS}/orders", key=key)

    assert (made.status, made.json()) == (201, {"name": "orders", "partitions": 2})
    assert again.json() == made.json()
    assert published.status == 201
    record = published.json()
    assert {"key": record["key"], "value": record["value"], "id": record["id"]} == {
        name: sent[name] for name in ("key", "value", "id")
    }
    assert record["headers"] == {"content-type": "application/json", "a": "b"}
    assert (record["topic"], record["offset"]) == ("orders", 0)
    assert page["records"] == [record]
    assert (listed["name"], listed["records"], listed["partitions"]) == ("orders", 1, 2)
    assert listed["per_second"] > 0
    assert removed.status == 204
    assert (await site.ask("GET", TOPICS, key=key)).json() == {"topics": []}


@pytest.mark.req("BUS-03")
async def test_pages_go_on_where_the_one_before_ended_and_miss_nothing(site: Site, key: str, orders: list[int]) -> None:
    seen: list[int] = []
    page = await replay(site, key, "limit=3")
    while page["records"]:
        assert len(page["records"]) <= 3
        seen += numbers(page)
        page = await replay(site, key, f"limit=3&positions={positions(page)}")

    assert sorted(seen) == list(range(9))
    assert page["next"] == {str(partition): count for partition, count in enumerate(orders)}


@pytest.mark.req("BUS-03")
async def test_the_newest_come_by_time_and_what_follows_comes_next(
    engine: Engine, site: Site, key: str, orders: list[int]
) -> None:
    page = await replay(site, key, "newest=true&limit=4")
    await engine.log.publish("orders", key="k", value={"n": 9})
    after = await replay(site, key, f"positions={positions(page)}")

    assert numbers(page) == [5, 6, 7, 8]
    assert numbers(after) == [9]


@pytest.mark.req("BUS-03")
async def test_records_are_read_again_from_an_offset_or_a_time_of_one_partition_or_all(
    engine: Engine, site: Site, key: str, orders: list[int], clock: Clock
) -> None:
    moment = await clock.advance(timedelta(hours=1))
    late = await engine.log.publish("orders", key="late", value={"n": 9})

    since = await replay(site, key, f"at={quote(moment.isoformat())}")
    one = await replay(site, key, f"partition={late.partition}&offset=1")
    newest = await replay(site, key, f"partition={late.partition}&newest=true&limit=1")

    assert numbers(since) == [9]
    assert [record["offset"] for record in one["records"]] == list(range(1, late.offset + 1))
    assert one["next"] == {str(late.partition): late.offset + 1}
    assert numbers(newest) == [9]


@pytest.mark.req("BUS-03")
async def test_who_replays_disturbs_no_group(engine: Engine, site: Site, key: str, orders: list[int]) -> None:
    async with engine.log.subscribe(["orders"], group="billing") as records:
        first = await anext(records)
        await records.commit(first)
    before = (await site.ask("GET", "/api/groups?group=billing", key=key)).json()

    await replay(site, key, "limit=1000")

    assert (await site.ask("GET", "/api/groups?group=billing", key=key)).json() == before


@pytest.mark.req("BUS-04")
async def test_a_group_s_lag_is_told_and_it_reads_again_from_where_it_is_set(
    engine: Engine, site: Site, key: str, orders: list[int]
) -> None:
    async with engine.log.subscribe(["orders"], group="billing") as records:
        for record in await records.batch():
            await records.commit(record)
        busy = await reset(site, key, {"topic": "orders"})

    done = (await site.ask("GET", "/api/groups?group=billing", key=key)).json()["partitions"]
    to_start = await reset(site, key, {"topic": "orders", "partition": 1})
    behind = (await site.ask("GET", "/api/groups", key=key)).json()["partitions"]
    to_end = await reset(site, key, {"topic": "orders", "end": True})

    assert (busy.status, busy.code) == (409, "busy")
    assert [(lag["partition"], lag["position"], lag["lag"]) for lag in done] == [(n, orders[n], 0) for n in range(3)]
    assert to_start.json() == {"positions": {"1": 0}}
    assert [(lag["group"], lag["lag"]) for lag in behind] == [("billing", 0), ("billing", orders[1]), ("billing", 0)]
    assert behind[1]["oldest"] is not None
    assert to_end.json() == {"positions": {str(n): orders[n] for n in range(3)}}


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("headers", [{}, {"Holdfast-User": "ann"}], ids=["a user's key", "a key that acts as a user"])
async def test_records_and_groups_are_for_who_administers_the_tenant(
    engine: Engine, site: Site, orders: list[int], headers: dict[str, str]
) -> None:
    scopes = ["read", "write", "admin", "act-as"] if headers else ["read", "write"]
    users = await make_key(engine, "bob", scopes=scopes)

    for method, path, body in [
        ("GET", TOPICS, None),
        ("POST", TOPICS, {"name": "mine"}),
        ("DELETE", f"{TOPICS}/orders", None),
        ("GET", RECORDS, None),
        ("POST", RECORDS, {"value": 1}),
        ("GET", "/api/groups", None),
        ("POST", "/api/groups/billing/reset", {"topic": "orders"}),
    ]:
        reply = await site.ask(method, path, key=users, json=body, headers=headers)
        assert (reply.status, reply.code) == (403, "forbidden"), (method, path)


@pytest.mark.req("ENG-04", "BUS-01")
async def test_a_tenant_s_topics_and_groups_are_its_own(engine: Engine, site: Site, orders: list[int]) -> None:
    await engine.tenants.create("acme")
    async with engine.log.subscribe(["orders"], group="billing"):
        pass
    others = await make_key(engine, "eve", tenant="acme")

    assert (await site.ask("GET", TOPICS, key=others)).json() == {"topics": []}
    assert (await site.ask("GET", "/api/groups?group=billing", key=others)).json() == {"partitions": []}
    for method, path, body in [
        ("GET", RECORDS, None),
        ("POST", RECORDS, {"value": 1}),
        ("DELETE", f"{TOPICS}/orders", None),
        ("POST", "/api/groups/billing/reset", {"topic": "orders"}),
    ]:
        assert (await site.ask(method, path, key=others, json=body)).status == 404, (method, path)


@pytest.mark.req("BUS-01", "ENG-07")
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", TOPICS, {"name": "a.b"}, 400),
        ("POST", TOPICS, {"name": "ü"}, 400),
        ("POST", TOPICS, {"name": "x", "partitions": 0}, 400),
        ("POST", TOPICS, {"name": "orders", "partitions": 4}, 409),
        ("DELETE", f"{TOPICS}/unknown", None, 404),
        ("GET", f"{TOPICS}/unknown/records", None, 404),
        ("GET", f"{RECORDS}?partition=3", None, 400),
        ("GET", f"{RECORDS}?positions=3:0", None, 400),
        ("GET", f"{RECORDS}?positions=nowhere", None, 400),
        ("GET", f"{RECORDS}?offset=-1", None, 400),
        ("GET", f"{RECORDS}?offset=1&newest=true", None, 400),
        ("GET", f"{RECORDS}?offset=1&at=2026-01-01T00:00:00Z", None, 400),
        ("GET", f"{RECORDS}?at=yesterday", None, 400),
        ("GET", f"{RECORDS}?at=2026-01-01T00:00:00", None, 400),
        ("GET", f"{RECORDS}?limit=1001", None, 400),
        ("POST", f"{TOPICS}/unknown/records", {"value": 1}, 404),
        ("POST", RECORDS, {}, 400),
        ("POST", RECORDS, {"value": 1, "key": 7}, 400),
        ("POST", RECORDS, {"value": 1, "headers": {"a": 1}}, 400),
        ("POST", RECORDS, {"value": 1, "id": "x"}, 400),
        ("POST", RECORDS, {"value": "x" * 1_000_000}, 413),
        ("POST", "/api/groups/nobody/reset", {"topic": "orders"}, 404),
        ("POST", "/api/groups/acme.billing/reset", {"topic": "orders"}, 400),
        ("POST", "/api/groups/billing/reset", {"topic": "unknown"}, 404),
        ("POST", "/api/groups/billing/reset", {"topic": "orders", "offset": 1, "end": True}, 400),
    ],
)
async def test_what_cannot_be_done_is_a_clear_problem(
    site: Site, key: str, orders: list[int], method: str, path: str, body: Any, status: int
) -> None:
    reply = await site.ask(method, path, key=key, json=body)

    assert reply.status == status, reply
    assert reply.code
    assert reply.json()["next"]


@pytest.mark.req("ENG-07")
async def test_who_removes_what_is_not_there_is_not_told_to_make_it(site: Site, key: str) -> None:
    reply = await site.ask("DELETE", f"{TOPICS}/unknown", key=key)

    assert reply.json()["next"] == "List the topics with `holdfast topics ls`."


async def test_a_name_that_no_group_can_have_is_unknown(site: Site, key: str, orders: list[int]) -> None:
    assert (await site.ask("GET", "/api/groups?group=%00", key=key)).json() == {"partitions": []}


async def reset(site: Site, key: str, body: dict[str, Any]) -> Reply:
    return await site.ask("POST", "/api/groups/billing/reset", key=key, json=body)


def positions(page: dict[str, Any]) -> str:
    return ",".join(f"{partition}:{offset}" for partition, offset in page["next"].items())
