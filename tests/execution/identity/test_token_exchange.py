"""Token exchange: a back end gets a token of its own for the user who calls."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from time import time
from typing import Any

import jwt
import pytest
from aiohttp import web

from holdfast.core.config import Config
from holdfast.core.errors import Unauthenticated, Unavailable
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import Engine, open_engine
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.identity.authorization_servers import AuthorizationServers
from holdfast.execution.identity.own_tokens import OwnTokens, TokenRequests
from holdfast.execution.identity.token_endpoint import TokenEndpoint
from holdfast.execution.identity.token_exchange import TokenExchange
from holdfast.execution.worker_runner import headers_of
from holdfast.skills.request import BackendIdentity
from holdfast.skills.run import Run
from tests.access.issuing import claims_of, ed, signed
from tests.execution.backend import Keyring, Service
from tests.execution.identity.conftest import EVERYTHING, add_shop, call, described, told
from tests.oauth.authorization_server import ACCESS_TOKEN, EXCHANGE, SmallServer
from tests.oauth.keycloak import Keycloak, audience_mapper, confidential_client, public_client
from tests.oauth.spring_server import SpringServer, spring_server
from tests.server.conftest import running

TENANT = TenantId(uuid7())


def exchange(authority: SmallServer, **more: Any) -> BackendIdentity:
    """An identity by exchange of the caller's token for one for the shop."""
    given: dict[str, Any] = {"token_url": authority.token_url, "client_id": "holdfast", "client_secret": "client"}
    given |= {"audience": "shop", **more}
    return BackendIdentity("token_exchange", **given)


def token_of(user: str, **claims: object) -> str:
    """The token of a caller."""
    return signed(claims_of("https://login.example", sub=user, **claims), ed(), "EdDSA")


def read(token: str) -> dict[str, Any]:
    """The claims of a token."""
    return jwt.decode(token, options={"verify_signature": False})


@pytest.fixture
async def tokens() -> AsyncIterator[TokenExchange]:
    """Exchanges without a database."""
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        requests = TokenRequests(AuthorizationServers(egress), TokenEndpoint(egress, timeout=1))
        yield TokenExchange(requests, OwnTokens(requests))


@pytest.fixture(scope="module")
def spring() -> Iterator[SpringServer]:
    """A server whose exchanged tokens name the actor."""
    with spring_server() as server:
        yield server


async def get(tokens: TokenExchange, identity: BackendIdentity, subject: str) -> str:
    """The token for a caller with a token."""
    return (await tokens.token(TENANT, identity, subject, Keyring(client="s3cret"), "the source shop")).text


@pytest.mark.req("MCP-06")
async def test_keycloak_exchanges_a_caller_s_token_for_one_of_the_back_end(
    config: Config, keycloak: Keycloak, shop: Service
) -> None:
    ours = confidential_client(
        "holdfast",
        "s3cret",
        attributes={"standard.token.exchange.enabled": "true"},
        protocolMappers=[audience_mapper("shop")],
    )
    app = public_client("app", protocolMappers=[audience_mapper("holdfast")])
    with keycloak.realm(clients=[ours, app, confidential_client("shop", "shop's")], users=["ann", "bob"]) as realm:
        issuer = Issuer(
            issuer=realm.issuer,
            audience=("holdfast",),
            user_claim="preferred_username",
            scopes=("admin", "read", "write"),
        )
        config = config.model_copy(update={"access": AccessSettings(issuers=(issuer,))})
        async with open_engine(config=config) as engine, running(engine, config) as site:
            here = engine.tenant(await engine.tenants.id_of("default"))
            identity = BackendIdentity(
                "token_exchange", audience="shop", issuer=realm.issuer, client_id="holdfast", client_secret="client"
            )
            await add_shop(here, shop, identity)
            await here.secrets.set("client", "s3cret")
            await here.tools.permit("get_order", {"users": "execute"})
            given = {user: realm.user_token(user, "app") for user in ("ann", "bob")}
            for user in ("ann", "bob", "ann"):
                body = {"jsonrpc": "2.0", "id": 1, "method": "get_order"}
                reply = await site.ask("POST", "/rpc", key=given[user], json=body)
                assert reply.status == 200, reply

    sent = [headers["Authorization"].removeprefix("Bearer ") for headers in told(shop)]
    claims = [read(token) for token in sent]
    assert [each["preferred_username"] for each in claims] == ["ann", "bob", "ann"]
    assert [each["sub"] for each in claims[:2]] == [read(given[user])["sub"] for user in ("ann", "bob")]
    assert {(each["aud"], each["azp"], each["iss"]) for each in claims} == {("shop", "holdfast", realm.issuer)}
    assert sent[0] == sent[2]
    assert not set(sent) & set(given.values())


@pytest.mark.req("MCP-06")
async def test_spring_exchanges_a_caller_s_token_for_one_that_names_the_engine_as_the_actor(
    engine: Engine, shop: Service, spring: SpringServer
) -> None:
    given: dict[str, Any] = {"audience": "shop", "client_id": "holdfast", "client_secret": "client", "actor": True}
    await add_shop(engine, shop, BackendIdentity("token_exchange", issuer=spring.issuer, **given))
    await engine.secrets.set("client", "s3cret")
    subject = await spring.user_token("ann")

    await call(engine, token=subject)

    sent = told(shop)[0]["Authorization"].removeprefix("Bearer ")
    claims = read(sent)
    assert (claims["sub"], claims["aud"], claims["iss"]) == ("ann", "shop", spring.issuer)
    assert claims["act"] == {"sub": "holdfast", "iss": spring.issuer}
    assert read(subject)["aud"] == "app"


@pytest.mark.req("MCP-06")
async def test_an_exchange_has_the_subject_the_actor_the_audience_and_the_resource(
    tokens: TokenExchange, authority: SmallServer
) -> None:
    subject = token_of("ann")
    identity = exchange(authority, actor=True, resource="https://shop.example/api", scopes=("orders",))

    token = await get(tokens, identity, subject)

    own, asked = authority.asked
    assert own == {"grant_type": "client_credentials"}
    assert asked == {
        "grant_type": EXCHANGE,
        "subject_token": subject,
        "subject_token_type": ACCESS_TOKEN,
        "requested_token_type": ACCESS_TOKEN,
        "audience": "shop",
        "resource": "https://shop.example/api",
        "scope": "orders",
        "actor_token": asked["actor_token"],
        "actor_token_type": ACCESS_TOKEN,
    }
    assert (read(token)["aud"], read(token)["act"]) == ("shop", {"sub": asked["actor_token"][-16:]})


@pytest.mark.req("MCP-06")
async def test_a_thousand_first_calls_make_one_exchange_per_subject_and_audience(
    tokens: TokenExchange, authority: SmallServer
) -> None:
    subjects = [token_of(user) for user in ("ann", "bob")]
    identities = [exchange(authority), exchange(authority, audience="bank")]
    kinds = [(identity, subject) for identity in identities for subject in subjects]

    found = await asyncio.gather(*(get(tokens, *kinds[number % 4]) for number in range(1000)))

    assert len(authority.asked) == len(set(found)) == 4
    assert {(each["audience"], each["subject_token"]) for each in authority.asked} == {
        (identity.audience, subject) for identity, subject in kinds
    }


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"issued_token_type": "urn:ietf:params:oauth:token-type:id_token"}, {}, "not an access token"),
    ({"issued_token_type": None}, {}, "no type"),
    ({"token_type": "DPoP"}, {}, "only bearer tokens"),
    ({"expires_in": None, "access_token": "opaque"}, {}, "did not say when"),
    ({"expires_in": 0}, {}, "expired already"),
    ({"expires_in": -5}, {}, "expired already"),
    ({}, {"exp": 1}, "expired already"),
    ({"expires_in": None}, {"exp": 10**400}, "did not say when"),
    ({}, {"aud": "bank"}, "its audience is 'bank' and not 'shop'"),
    ({}, {"aud": ["bank", "casino"]}, "its audience is"),
    ({"access_token": ""}, {}, "no access_token"),
]


@pytest.mark.req("MCP-06")
@pytest.mark.parametrize(("change", "claims", "why"), WRONG)
async def test_a_wrong_answer_to_an_exchange_is_refused(
    tokens: TokenExchange, authority: SmallServer, change: dict[str, Any], claims: dict[str, Any], why: str
) -> None:
    authority.change, authority.claims = change, claims

    with pytest.raises(Unavailable) as refused:
        await get(tokens, exchange(authority), token_of("ann"))

    assert why in str(refused.value)


async def test_an_answer_that_is_no_bearer_token_by_its_type_but_a_jwt_is_taken(
    tokens: TokenExchange, authority: SmallServer
) -> None:
    authority.change = {"token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:jwt"}

    token = await get(tokens, exchange(authority, requested="jwt"), token_of("ann"))

    assert read(token)["aud"] == "shop"
    assert authority.asked[0]["requested_token_type"].endswith(":jwt")


async def test_a_failure_is_repeated_for_a_moment_and_a_server_that_hangs_is_given_up(
    tokens: TokenExchange, authority: SmallServer
) -> None:
    authority.waits = asyncio.Event()
    subject = token_of("ann")

    for _ in range(3):
        with pytest.raises(Unavailable, match="within 1 seconds"):
            await get(tokens, exchange(authority), subject)

    authority.waits.set()
    assert len(authority.asked) == 1


async def test_an_exchanged_token_is_kept_no_longer_than_the_caller_s(
    tokens: TokenExchange, authority: SmallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(tokens._kept, "_clock", lambda: now)  # pyright: ignore[reportPrivateUsage]
    subject = token_of("ann", exp=int(time()) + 60)
    await get(tokens, exchange(authority), subject)
    now = 40.0
    await get(tokens, exchange(authority), subject)
    now = 50.0

    await get(tokens, exchange(authority), subject)

    assert len(authority.asked) == 2


async def test_a_caller_s_token_that_has_expired_is_not_exchanged(
    tokens: TokenExchange, authority: SmallServer
) -> None:
    with pytest.raises(Unauthenticated, match="the caller's token has expired"):
        await get(tokens, exchange(authority), token_of("ann", exp=int(time()) - 1))

    assert authority.asked == []


async def test_a_caller_without_a_token_is_refused(engine: Engine, shop: Service, authority: SmallServer) -> None:
    await add_shop(engine, shop, exchange(authority))

    error = await call(engine)

    assert "needs a token of the caller's identity provider" in error
    assert (authority.asked, shop.asked) == ([], [])


@pytest.mark.parametrize(
    ("fallback", "header"), [("signed", "Holdfast-Identity"), ("client_credentials", "Authorization")]
)
async def test_a_source_can_say_what_a_caller_without_a_token_sends(
    engine: Engine, shop: Service, authority: SmallServer, fallback: Any, header: str
) -> None:
    await add_shop(engine, shop, exchange(authority, fallback=fallback))

    await call(engine)
    await call(engine, token=token_of("ann"))

    first, second = told(shop)
    assert header in first
    assert [each["grant_type"] for each in authority.asked][-1] == EXCHANGE
    assert read(second["Authorization"].removeprefix("Bearer "))["aud"] == "shop"


@pytest.mark.req("SAFE-02")
async def test_the_caller_s_token_is_in_no_row_and_in_no_log(
    engine: Engine, shop: Service, authority: SmallServer, caplog: pytest.LogCaptureFixture
) -> None:
    await add_shop(engine, shop, exchange(authority))
    subject = token_of("ann")
    with caplog.at_level(logging.DEBUG, "holdfast"):
        await call(engine, token=subject)
        authority.instead = web.json_response({"error": "invalid_request", "error_description": subject}, status=400)
        await call(engine, "post_order", token=token_of("bob"))
    async with engine.postgres.owner() as owner:
        tables = await owner.all("select oid::regclass::text as name from pg_class where relkind = 'r' and oid > 16383")
        dump = [row[0] for table in tables for row in await owner.all(f"select t::text from {table['name']} t")]

    everything = "\n".join([*dump, caplog.text])
    sent = told(shop)[0]["Authorization"].removeprefix("Bearer ")
    assert "get_order" in everything
    assert not [token for token in (subject, sent) if token in everything or token.rpartition(".")[2] in everything]


@pytest.mark.req("SAFE-02")
def test_no_command_to_a_worker_and_no_repr_has_the_caller_s_token() -> None:
    run = Run("ann", "support", None, None, None, "call", "key", token="a caller's token")

    assert "a caller's token" not in repr(run)
    assert "a caller's token" not in headers_of(run).values()


@pytest.mark.req("MCP-06")
async def test_a_thousand_first_calls_of_tools_make_one_exchange_per_subject_and_audience_at_keycloak(
    engine: Engine, keycloak: Keycloak
) -> None:
    names = ("bank", "shop")
    ours = confidential_client(
        "holdfast",
        "s3cret",
        attributes={"standard.token.exchange.enabled": "true"},
        protocolMappers=[audience_mapper(name) for name in names],
    )
    app = public_client("app", protocolMappers=[audience_mapper("holdfast")])
    audiences = [confidential_client(name, "its own") for name in names]
    events: dict[str, Any] = {"eventsEnabled": True, "enabledEventTypes": ["TOKEN_EXCHANGE"]}
    with keycloak.realm(clients=[ours, app, *audiences], users=["ann", "bob"], **events) as realm:
        subjects = {user: realm.user_token(user, "app") for user in ("ann", "bob")}
        await engine.secrets.set("client", "s3cret")
        async with AsyncExitStack() as stack:
            services = {name: await stack.enter_async_context(Service().serving()) for name in names}
            for name, service in services.items():
                identity = BackendIdentity(
                    "token_exchange", audience=name, issuer=realm.issuer, client_id="holdfast", client_secret="client"
                )
                text = described(service.url, {f"/{name}": {"get": {}}})
                await engine.sources.add(name, document=text, choice=EVERYTHING, identity=identity)
            tools = {name: (await engine.tools.get(f"get_{name}")).tool for name in names}

            async def run(number: int) -> str:
                user, name = ("ann", "bob")[number % 2], names[number // 2 % 2]
                by = Run(user, None, None, None, None, f"call-{number}", f"key-{number}", token=subjects[user])
                return (await engine.executor.run(tools[name], {}, by, timeout=60, max_output_bytes=10_000)).status

            outcomes = await asyncio.gather(*map(run, range(1000)))
        exchanges = realm.administer("GET", "/events?type=TOKEN_EXCHANGE&max=1000")

    sent = {name: {asked.headers["Authorization"] for asked in service.asked} for name, service in services.items()}
    claims = [read(token.removeprefix("Bearer ")) for name in names for token in sent[name]]
    assert set(outcomes) == {"done"}
    assert [len(service.asked) for service in services.values()] == [500, 500]
    assert len(exchanges) == 4
    assert sorted((each["aud"], each["preferred_username"]) for each in claims) == [
        ("bank", "ann"), ("bank", "bob"), ("shop", "ann"), ("shop", "bob"),
    ]  # fmt: skip
