"""Signed identities: what a back end can verify by the published keys."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from time import time
from typing import Any, cast

import jwt
import pytest
from joserfc import jwt as jose
from joserfc.jwk import ECKey, KeySet

from holdfast.core.errors import InvalidInput, Unavailable
from holdfast.core.ids import TenantId
from holdfast.core.request_context import RequestContext, set_request
from holdfast.engine import Engine
from holdfast.execution.identity.identity_keys import KEPT, LEAD, MAX_AGE, IdentityKeys
from holdfast.execution.identity.signed_tokens import Signed, SignedTokens
from holdfast.skills.request import BackendIdentity
from tests.clock import Clock
from tests.execution.backend import Service
from tests.execution.identity.conftest import EVERYTHING, add_shop, call, described, told

SIGNED = BackendIdentity("signed")
HEADER = "Holdfast-Identity"


@pytest.mark.req("MCP-06")
async def test_a_back_end_verifies_by_the_published_keys_who_calls(engine: Engine, shop: Service) -> None:
    await add_shop(engine, shop, SIGNED)
    set_request(RequestContext("http", "request-1"))

    await call(engine, "get_order", agent=None)

    [headers] = told(shop)
    keys = {"keys": await engine.identity_keys.published()}
    by_joserfc = jose.decode(headers[HEADER], KeySet.import_key_set(cast(Any, keys)), algorithms=["ES256"]).claims
    key = jwt.PyJWKSet.from_dict(keys)[jwt.get_unverified_header(headers[HEADER])["kid"]]
    by_pyjwt = jwt.decode(headers[HEADER], key, algorithms=["ES256"], audience=shop.url)
    assert by_joserfc == by_pyjwt
    assert {name: by_pyjwt[name] for name in ("sub", "tenant", "tool", "aud")} == {
        "sub": "ann",
        "tenant": "default",
        "tool": "get_order",
        "aud": shop.url,
    }
    assert by_pyjwt["iss"] == engine.identity_keys.installation
    assert 240 <= by_pyjwt["exp"] - time() <= 300
    assert headers["X-Request-Id"] == "request-1"
    assert "Authorization" not in headers


async def test_a_token_is_sent_again_for_the_same_caller_and_tool_only(engine: Engine, shop: Service) -> None:
    await add_shop(engine, shop, SIGNED)

    for name, user in (("get_order", "ann"), ("get_order", "ann"), ("get_order", "bob"), ("post_order", "ann")):
        await call(engine, name, user=user)

    first, again, of_bob, to_write = (headers[HEADER] for headers in told(shop))
    assert first == again
    assert len({first, of_bob, to_write}) == 3


async def test_the_audience_of_the_source_replaces_the_address(engine: Engine, shop: Service) -> None:
    await add_shop(engine, shop, BackendIdentity("signed", audience="urn:shop"))

    await call(engine)

    claims = jwt.decode(told(shop)[0][HEADER], options={"verify_signature": False})
    assert claims["aud"] == "urn:shop"


async def test_an_answer_that_repeats_a_token_reaches_nobody_with_it(engine: Engine, shop: Service) -> None:
    await add_shop(engine, shop, SIGNED)

    value = await call(engine)

    token = told(shop)[0][HEADER]
    assert value["headers"]["holdfast-identity"] == "[secret]"
    assert token not in str(value)


async def test_a_model_cannot_say_who_calls(engine: Engine, shop: Service) -> None:
    parameter = {"name": HEADER, "in": "header", "schema": {"type": "string"}}
    text = described(shop.url, {"/a": {"get": {"parameters": [parameter]}}})
    await engine.sources.add("shop", document=text, choice=EVERYTHING, identity=SIGNED)

    await engine.executions.call("get_a", {"Holdfast-Identity": "forged"}, user="ann")

    [headers] = told(shop)
    assert [value for name, value in headers.items() if name.lower() == "holdfast-identity"] == [headers[HEADER]]
    assert headers[HEADER].count(".") == 2


async def test_a_redirect_to_another_origin_takes_no_identity_there(engine: Engine, shop: Service) -> None:
    await add_shop(engine, shop, SIGNED)
    async with Service().serving() as other:
        shop.will_answer("/order", status=302, headers={"Location": f"{other.url}/elsewhere"})

        await call(engine)

    assert HEADER in told(shop)[0]
    assert HEADER not in told(other)[0]
    assert "X-Request-Id" not in told(other)[0]


async def test_a_document_does_not_take_the_identity_to_another_address(engine: Engine, shop: Service) -> None:
    await add_shop(engine, shop, SIGNED)
    elsewhere = described("https://shop.example.org", {"/order": {"get": {}, "post": {}}})

    with pytest.raises(InvalidInput, match=r"a new address of its service: https://shop\.example\.org"):
        await engine.sources.reload("shop", document=elsewhere)
    accepted = await engine.sources.reload("shop", document=elsewhere, accept_address=True)

    assert [each.name for each in accepted.held] == ["get_order", "post_order"]


@dataclass
class Node:
    """A process that signs, and the clock that it sees."""

    keys: IdentityKeys
    tokens: SignedTokens


@dataclass
class World:
    """Nodes of an installation, and a back end that fetches keys as long as they are fresh, and never sooner."""

    engine: Engine
    now: float = 0.0
    fetched: float = float("-inf")
    keys: dict[str, Any] = field(default_factory=dict[str, Any])

    def node(self, secret: bytes = b"secret") -> Node:
        keys = IdentityKeys(self.engine.postgres.system, secret, clock=lambda: self.now)
        return Node(keys, SignedTokens(keys, issuer="https://agents.example", clock=lambda: self.now))

    async def token(self, node: Node) -> str:
        signed = Signed(TenantId(await self.engine.database.tenant()), "ann", None, "read", "shop")
        return (await node.tokens.token(signed, partial(self.engine.tenants.name_of, signed.tenant))).text

    async def verified(self, token: str, node: Node) -> str:
        """The id of the key that signed; it fails if the back end does not know it."""
        if self.now - self.fetched >= MAX_AGE:
            self.keys, self.fetched = {"keys": await node.keys.published()}, self.now
        jose.decode(token, KeySet.import_key_set(cast(Any, self.keys)), algorithms=["ES256"])
        return jwt.get_unverified_header(token)["kid"]


@pytest.mark.req("MCP-06")
async def test_a_back_end_that_keeps_keys_verifies_every_token_through_a_rotation(engine: Engine, clock: Clock) -> None:
    await clock.stop()
    world = World(engine)
    nodes = [world.node(), world.node()]
    signed: list[str] = []
    published: list[int] = []

    for step in range(24):
        if step == 4:
            await nodes[0].keys.rotate(by="ann")
        for node in nodes:
            token = await world.token(node)
            await asyncio.gather(*(each.keys._reading for each in nodes if each.keys._reading))  # pyright: ignore[reportPrivateUsage]
            signed.append(await world.verified(token, nodes[step % 2]))
        published.append(len(await nodes[1].keys.published()))
        world.now += 70
        await clock.advance(timedelta(seconds=70))

    first, second = dict.fromkeys(signed)
    assert signed == [first] * signed.count(first) + [second] * signed.count(second)
    assert signed.count(first) >= 2 * (4 + LEAD.total_seconds() // 70)
    assert set(published) == {1, 2}
    assert published[-1] == 1
    assert published.count(2) >= (LEAD + KEPT).total_seconds() // 70 - 1


async def test_processes_that_need_the_first_key_at_the_same_time_make_one(engine: Engine) -> None:
    world = World(engine)
    nodes = [world.node() for _ in range(4)]

    keys = await asyncio.gather(*(node.keys.current() for node in nodes))

    assert len({key.kid for key in keys}) == 1
    assert len(await nodes[0].keys.list()) == 1


async def test_a_thousand_first_calls_of_a_process_make_one_key(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ECKey] = []
    generate = ECKey.generate_key

    def counted(*given: Any) -> ECKey:
        made.append(generate(*given))
        return made[-1]

    monkeypatch.setattr(ECKey, "generate_key", counted)
    node = World(engine).node()

    await asyncio.gather(*(node.keys.current() for _ in range(1000)))

    assert len(made) == 1


async def test_a_rotation_at_once_replaces_all_keys(engine: Engine) -> None:
    node = World(engine).node()
    leaked = await node.keys.current()

    listed = await node.keys.rotate(at_once=True, by="ann")

    assert [(each.signs, each.usable, each.created_by) for each in listed] == [(True, True, "ann")]
    assert leaked.kid not in {each["kid"] for each in await node.keys.published()}
    assert (await node.keys.current()).kid == listed[0].kid


async def test_a_private_key_is_stored_encrypted_and_of_no_use_with_another_secret(engine: Engine) -> None:
    world = World(engine)
    await world.node().keys.current()
    other = world.node(b"another secret")

    with pytest.raises(Unavailable, match="encrypted with another secret"):
        await other.keys.current()
    [row] = await engine.postgres.system.all("select t::text from identity_key t")
    [listed] = await other.keys.list()
    [published] = await other.keys.published()

    assert "PRIVATE" not in row[0]
    assert b"PRIVATE".hex() not in row[0]
    assert not listed.usable
    assert published.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"}
