from typing import Any
from uuid import UUID

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

LETTERS = "/api/dead-letters"
UNKNOWN = UUID(int=7)

pytestmark = pytest.mark.req("BUS-04")


@pytest.fixture
def config(config: Config) -> Config:
    """The settings of an engine that gives up at the first failure."""
    return config.model_copy(update={"bus": config.bus.model_copy(update={"max_attempts": 1})})


@pytest.fixture
async def letters(engine: Engine) -> list[str]:
    """The ids of three records of one partition that the group `billing` has given up, the newest first."""
    await engine.log.create("orders", partitions=1)
    for number in range(3):
        await engine.log.publish("orders", key="ann", value={"n": number}, headers={"a": "b"})
    async with engine.log.subscribe(["orders"], group="billing") as records:
        for record in await records.batch():
            await records.fail(record, f"cannot do {record.value['n']}")
    return [str(letter.id) for letter in await engine.dead_letters.list()]


async def ids(site: Site, key: str, query: str = "") -> list[str]:
    listed = await site.ask("GET", f"{LETTERS}?{query}", key=key)
    return [letter["id"] for letter in listed.json()["dead_letters"]]


async def test_a_dead_letter_is_shown_with_its_error_and_its_record(site: Site, key: str, letters: list[str]) -> None:
    listed = await site.ask("GET", LETTERS, key=key)
    one = await site.ask("GET", f"{LETTERS}/{letters[0]}", key=key)

    assert listed.json()["dead_letters"][0] == one.json()
    shown = one.json()
    assert (shown["group"], shown["topic"], shown["offset"], shown["state"]) == ("billing", "orders", 2, "dead")
    assert (shown["key"], shown["value"], shown["headers"]["a"]) == ("ann", {"n": 2}, "b")
    assert (shown["error"], shown["attempts"]) == ("cannot do 2", 1)


async def test_they_are_listed_by_group_and_topic_page_by_page(site: Site, key: str, letters: list[str]) -> None:
    assert await ids(site, key, "limit=2") == letters[:2]
    assert await ids(site, key, f"limit=2&before={letters[1]}") == letters[2:]
    assert await ids(site, key, "group=billing&topic=orders") == letters
    assert await ids(site, key, "group=shipping") == []
    assert await ids(site, key, "topic=parcels") == []


async def test_one_that_is_redriven_is_delivered_to_its_group_again(
    engine: Engine, site: Site, key: str, letters: list[str]
) -> None:
    sent = await site.ask("POST", f"{LETTERS}/{letters[1]}/redrive", key=key)
    state = (await site.ask("GET", f"{LETTERS}/{letters[1]}", key=key)).json()["state"]
    async with engine.log.subscribe(["orders"], group="billing") as records:
        record = await anext(records)
        await records.commit(record)

    assert (sent.status, sent.body, state) == (204, b"", "redriven")
    assert (record.value, str(record.dead_letter)) == ({"n": 1}, letters[1])
    assert await ids(site, key) == [letters[0], letters[2]]


async def test_all_of_a_group_are_redriven_at_once_and_counted(site: Site, key: str, letters: list[str]) -> None:
    nobody_s = await site.ask("POST", f"{LETTERS}/redrive", key=key, json={"group": "shipping"})
    all_of_them = await site.ask("POST", f"{LETTERS}/redrive", key=key, json={"group": "billing", "topic": "orders"})
    again = await site.ask("POST", f"{LETTERS}/redrive", key=key, json={})

    assert nobody_s.json() == {"redriven": 0}
    assert all_of_them.json() == {"redriven": 3}
    assert again.json() == {"redriven": 0}


@pytest.mark.usefixtures("letters")
async def test_a_name_that_nothing_can_have_finds_none(site: Site, key: str) -> None:
    of_group = await site.ask("GET", f"{LETTERS}?group=%00", key=key)
    of_topic = await site.ask("GET", f"{LETTERS}?topic=%00", key=key)
    redriven = await site.ask("POST", f"{LETTERS}/redrive", key=key, json={"group": "\0"})

    assert of_group.json() == of_topic.json() == {"dead_letters": [], "cursor": None}
    assert redriven.json() == {"redriven": 0}


async def test_one_that_is_dropped_is_gone(site: Site, key: str, letters: list[str]) -> None:
    dropped = await site.ask("DELETE", f"{LETTERS}/{letters[0]}", key=key)
    gone = [
        await site.ask(method, f"{LETTERS}/{letters[0]}{end}", key=key)
        for method, end in (("GET", ""), ("DELETE", ""), ("POST", "/redrive"))
    ]

    assert (dropped.status, dropped.body) == (204, b"")
    assert [(reply.status, reply.code) for reply in gone] == [(404, "not_found")] * 3
    assert await ids(site, key) == letters[1:]


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_dead_letters_are_for_who_administers_their_tenant(
    engine: Engine, site: Site, letters: list[str]
) -> None:
    await engine.tenants.create("acme")
    users = await make_key(engine, "bob", scopes=["read", "write"])
    others = await make_key(engine, "eve", tenant="acme")
    requests: list[tuple[str, str, Any]] = [
        ("GET", f"/{letters[0]}", None),
        ("POST", f"/{letters[0]}/redrive", None),
        ("DELETE", f"/{letters[0]}", None),
    ]
    many: list[tuple[str, str, Any]] = [("GET", "", None), ("POST", "/redrive", {})]

    for method, path, body in [*requests, *many]:
        assert (await site.ask(method, LETTERS + path, key=users, json=body)).status == 403, (method, path)
    for method, path, body in requests:
        assert (await site.ask(method, LETTERS + path, key=others, json=body)).status == 404, (method, path)
    assert await ids(site, others) == []
    assert (await site.ask("POST", f"{LETTERS}/redrive", key=others, json={})).json() == {"redriven": 0}


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 400),
        ("GET", f"/{UNKNOWN}", 404),
        ("GET", "?limit=101", 400),
        ("GET", "?before=x", 400),
        ("GET", "/redrive", 405),
        ("POST", f"/{UNKNOWN}", 405),
    ],
)
async def test_what_cannot_be_done_is_a_clear_problem(
    site: Site, key: str, method: str, path: str, status: int
) -> None:
    reply = await site.ask(method, LETTERS + path, key=key)

    assert reply.status == status
    assert reply.code
