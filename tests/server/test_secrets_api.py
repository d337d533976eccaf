import logging

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("EXEC-04")

VALUE = "opensesame-4711"


async def test_a_secret_is_set_listed_without_its_value_and_removed(site: Site) -> None:
    made = await site.ask("PUT", "/api/secrets/shop-key", json={"value": VALUE, "hosts": ["API.example.com"]})
    again = await site.ask("PUT", "/api/secrets/shop-key", json={"value": f"{VALUE}-2", "hosts": ["*.example.com"]})
    listed = await site.ask("GET", "/api/secrets")
    removed = await site.ask("DELETE", "/api/secrets/shop-key")
    gone = await site.ask("DELETE", "/api/secrets/shop-key")

    assert (made.status, made.json()["hosts"], again.json()["version"]) == (200, ["api.example.com"], 2)
    (known,) = listed.json()["secrets"]
    assert (known["name"], known["hosts"], known["usable"]) == ("shop-key", ["*.example.com"], True)
    assert (removed.status, gone.status, gone.code) == (204, 404, "not_found")
    assert VALUE not in "".join(reply.body.decode() for reply in (made, again, listed))


async def test_a_value_is_in_no_answer_no_log_and_no_history(
    site: Site, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    refusals = [
        await site.ask("PUT", "/api/secrets/no%20name", json={"value": VALUE}),
        await site.ask("PUT", "/api/secrets/key", json={"value": VALUE, "hosts": "all"}),
        await site.ask("PUT", "/api/secrets/key", json={"value": VALUE, "hosts": ["https://x/"]}),
        await site.ask("PUT", "/api/secrets/key", json={"value": VALUE, "extra": VALUE}),
        await site.ask("PUT", "/api/secrets/key", json={"value": [VALUE]}),
        await site.ask(
            "PUT",
            "/api/secrets/key",
            body=f'{{"value": "{VALUE}"'.encode(),
            headers={"Content-Type": "application/json"},
        ),
        await site.ask("PUT", "/api/secrets/key", json={"value": f"{VALUE}\0"}),
        await site.ask("PUT", "/api/secrets/key", json={"value": ""}),
    ]
    await site.ask("PUT", "/api/secrets/key", json={"value": VALUE})

    changes = await engine.history.of(kind="secret", limit=10)
    assert {reply.status for reply in refusals} == {400}
    assert [reply for reply in refusals if VALUE in reply.body.decode()] == []
    assert VALUE not in caplog.text
    assert [change.name for change in changes] == ["key"]
    assert VALUE not in repr(changes)


async def test_a_value_that_is_too_large_is_refused(site: Site) -> None:
    reply = await site.ask("PUT", "/api/secrets/key", json={"value": "x" * 65_537})

    assert (reply.status, reply.code) == (413, "too_large")
    assert "xxx" not in reply.body.decode()


@pytest.mark.req("SAFE-03", "ENG-04")
async def test_secrets_are_for_who_administers_the_tenant(site: Site, engine: Engine) -> None:
    await engine.tenants.create("acme")
    await site.ask("PUT", "/api/secrets/key", json={"value": VALUE})
    reader = await make_key(engine, "bob", scopes=["read", "write"])
    stranger = await make_key(engine, "eve", tenant="acme")

    read = await site.ask("GET", "/api/secrets", key=reader)
    written = await site.ask("PUT", "/api/secrets/key", key=reader, json={"value": "other"})
    removed = await site.ask("DELETE", "/api/secrets/key", key=reader)

    assert (read.status, written.status, removed.status) == (403, 403, 403)
    assert (await site.ask("GET", "/api/secrets", key=stranger)).json() == {"secrets": []}
    assert (await site.ask("DELETE", "/api/secrets/key", key=stranger)).status == 404
