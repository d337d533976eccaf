"""Tokens of the engine's own, by client credentials."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from holdfast.engine import Engine
from holdfast.skills.request import BackendIdentity
from tests.execution.backend import Service
from tests.execution.identity.conftest import SECRET, add_shop, call, told
from tests.oauth.authorization_server import SmallServer


def own(authority: SmallServer, **more: Any) -> BackendIdentity:
    """An identity by client credentials."""
    given: dict[str, Any] = {"token_url": authority.token_url, "client_id": "holdfast", "client_secret": "client"}
    return BackendIdentity("client_credentials", **{**given, **more})


def age(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let tokens that are kept be so old that a back end can rightly refuse them."""
    monkeypatch.setattr("holdfast.execution.identity.own_tokens.REPLACED", -seconds)


@pytest.mark.req("MCP-06")
async def test_one_token_is_requested_for_all_calls(engine: Engine, shop: Service, authority: SmallServer) -> None:
    await add_shop(engine, shop, own(authority, audience="shop", scopes=("read", "write")))

    await asyncio.gather(*(call(engine, user=f"user {number}") for number in range(20)))

    assert authority.asked == [{"grant_type": "client_credentials", "audience": "shop", "scope": "read write"}]
    assert len({headers["Authorization"] for headers in told(shop)}) == 1


async def test_a_token_that_is_about_to_expire_is_replaced(
    engine: Engine, shop: Service, authority: SmallServer
) -> None:
    await add_shop(engine, shop, own(authority, issuer=authority.url, token_url=""))
    authority.seconds = 0
    authority.change = {"expires_in": 1e-3}

    first, second = await call(engine), await call(engine)

    assert len(authority.asked) == 2
    assert first["headers"]["authorization"] == second["headers"]["authorization"] == "Bearer [secret]"


@pytest.mark.parametrize("name", ["get_order", "post_order"])
async def test_a_kept_token_that_the_back_end_refuses_is_replaced_once(
    engine: Engine, shop: Service, authority: SmallServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    refused = set[str]()

    async def answer(request: web.Request) -> web.Response:
        is_refused = request.headers["Authorization"] in refused
        return web.json_response({"done": not is_refused}, status=401 if is_refused else 200)

    await add_shop(engine, shop, own(authority))
    shop.will_answer("/order", answer)
    await call(engine, name)
    refused.add(told(shop)[0]["Authorization"])
    age(monkeypatch, 1)

    value = await call(engine, name)

    assert value == {"done": True}
    assert (len(authority.asked), len(shop.asked)) == (2, 3)


async def test_a_back_end_that_refuses_every_token_is_asked_twice_at_most(
    engine: Engine, shop: Service, authority: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_shop(engine, shop, own(authority))
    shop.will_answer("/order", status=401)
    age(monkeypatch, 1)

    await call(engine)

    assert (len(authority.asked), len(shop.asked)) == (2, 2)


async def test_a_new_token_that_the_back_end_refuses_is_not_replaced(
    engine: Engine, shop: Service, authority: SmallServer
) -> None:
    await add_shop(engine, shop, own(authority))
    shop.will_answer("/order", status=401)

    for _ in range(3):
        await call(engine)

    assert (len(authority.asked), len(shop.asked)) == (1, 3)


async def test_the_client_secret_goes_only_to_the_hosts_that_may_get_it(
    engine: Engine, shop: Service, authority: SmallServer
) -> None:
    await add_shop(engine, shop, own(authority))
    await engine.secrets.set("client", SECRET, hosts=["login.example.com"])

    error = await call(engine)

    assert "the secret client may not be sent to this host" in error
    assert (authority.asked, shop.asked) == ([], [])


async def test_a_source_tells_that_its_client_secret_is_missing(
    engine: Engine, shop: Service, authority: SmallServer
) -> None:
    await add_shop(engine, shop, own(authority))
    await engine.secrets.remove("client")

    found = await engine.sources.get("shop")

    assert found.source.missing_secrets == ("client",)


async def test_a_refusal_of_the_authorization_server_is_told_without_its_reason_and_repeated_for_a_moment(
    engine: Engine, shop: Service, authority: SmallServer
) -> None:
    await add_shop(engine, shop, own(authority))
    authority.instead = web.json_response({"error": "invalid_client", "error_description": SECRET}, status=401)

    errors = [await call(engine) for _ in range(3)]

    assert "gave no token" in errors[0]
    assert SECRET not in str(errors)
    assert (len(authority.asked), shop.asked) == (1, [])
