import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from time import time
from typing import Any, Protocol

import pytest

from holdfast.access import tokens as tokens_module
from holdfast.access.jwks import FRESH, PAUSE, STALE, Fetch
from holdfast.access.principals import Principal
from holdfast.access.tenants import Tenants
from holdfast.access.tokens import CACHE_SECONDS, Tokens
from holdfast.core.errors import BadSetting, Unauthenticated, Unavailable
from holdfast.core.issuers import AccessSettings, Issuer
from holdfast.engine import Engine
from holdfast.execution.documents import Documents
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.postgres.database import Postgres
from holdfast.postgres.options import Options
from tests.access.issuing import (
    SECRET,
    IssuerServer,
    claims_of,
    ec,
    ed,
    encoded,
    issuer_server,
    rsa,
    shared_token,
    signed,
)

pytestmark = pytest.mark.req("MCP-06", "SAFE-03")

USER = frozenset({"read", "write"})
OWN_JWK = ec("own").as_dict(private=False)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return time() + self.passed


class Trust(Protocol):
    def __call__(self, tenants: Tenants = ..., **settings: Any) -> Tokens: ...


@pytest.fixture
def now() -> Clock:
    """The clock that tokens and the age of keys are judged by."""
    return Clock()


@pytest.fixture
async def issuer() -> AsyncIterator[IssuerServer]:
    """An issuer with one key."""
    async with issuer_server() as issuer:
        yield issuer


@pytest.fixture
async def fetch(issuer: IssuerServer) -> AsyncIterator[Fetch]:
    """What fetches from the issuer, and from nowhere else on this machine."""
    async with Egress(AllowedHosts.parse([issuer.url.removeprefix("http://")])) as egress:
        yield Documents(egress, timeout=5).fetch


@pytest.fixture
async def trust(issuer: IssuerServer, fetch: Fetch, now: Clock) -> AsyncIterator[Trust]:
    """Makes what recognises the issuer's tokens; the database is not there for those who do not come so far."""
    made: list[Tokens] = []
    url = "postgresql://127.0.0.1:1/none"
    nowhere = Tenants(Postgres(url, Options(), owner_url=url).system)

    def trust(tenants: Tenants = nowhere, **settings: Any) -> Tokens:
        given: dict[str, Any] = {"issuer": issuer.url, "audience": "holdfast", "jwks_url": issuer.jwks_url, **settings}
        made.append(Tokens(AccessSettings(issuers=(Issuer(**given),)), tenants, fetch, clock=now))
        return made[-1]

    yield trust
    for tokens in made:
        await tokens.close()


async def refusal(tokens: Tokens, text: str) -> str:
    """Why a token is refused."""
    with pytest.raises(Unauthenticated, match="the token is invalid") as caught:
        await tokens.authenticate(text)
    return caught.value.why


async def test_a_token_of_a_trusted_issuer_says_who_calls(engine: Engine, trust: Trust, issuer: IssuerServer) -> None:
    issuer.keys = [rsa(), ec(), ed()]
    default = await engine.tenants.id_of("default")
    tokens = trust(engine.tenants, algorithms="RS256,PS256,ES256,EdDSA,Ed25519")
    ways = [(rsa(), "RS256"), (rsa(), "PS256"), *((key, "ES256") for key in issuer.keys[1:2])]
    ways += [(issuer.keys[2], "EdDSA"), (issuer.keys[2], "Ed25519")]

    found = [await tokens.authenticate(issuer.token(key, algorithm, sub=algorithm)) for key, algorithm in ways]

    assert found == [Principal(default, algorithm, USER) for _, algorithm in ways]
    assert issuer.asked == ["/.well-known/jwks.json"]


@pytest.mark.req("ENG-10")
async def test_a_platform_s_tokens_are_taken_by_its_secret_or_by_its_keys(engine: Engine, fetch: Fetch) -> None:
    async with issuer_server("/auth/v1") as platform:
        platform.keys = [ec("project")]
        settings = [
            Issuer(issuer="https://older.example/auth/v1", audience=("authenticated",), secret=SECRET),  # pyright: ignore[reportArgumentType]
            Issuer(issuer=platform.url, audience=("authenticated",), jwks_url=f"{platform.url}/.well-known/jwks.json"),
        ]
        async with Egress(AllowedHosts.parse([platform.url.split("/")[2]])) as egress:
            tokens = Tokens(AccessSettings(issuers=tuple(settings)), engine.tenants, Documents(egress).fetch)
            claims = {"aud": "authenticated", "role": "authenticated", "sub": "7b1e4c0e-8a53-4f0e-9d34-3b7f0a5d7c11"}
            older, newer = (
                shared_token("https://older.example/auth/v1", **claims),
                platform.token(None, "ES256", **claims),
            )

            found = [await tokens.authenticate(older), await tokens.authenticate(newer)]

            anonymous = {"aud": "authenticated", "role": "anon", "sub": None}
            assert {(each.user, each.scopes) for each in found} == {(claims["sub"], USER)}
            assert "not a name" in await refusal(tokens, platform.token(None, "ES256", **anonymous))


@pytest.mark.parametrize(
    ("header", "claims", "why"),
    [
        ({}, {"iss": "https://evil.example"}, "is unknown"),
        ({}, {"iss": None}, "is unknown"),
        ({}, {"iss": ["x"]}, "is unknown"),
        ({}, {"aud": "somebody else"}, "its audience is another server"),
        ({}, {"exp": 1}, "has expired"),
        ({}, {"exp": None}, "no expiry time"),
        ({}, {"nbf": 32_000_000_000}, "not valid yet"),
        ({"alg": "none"}, {}, "algorithm is 'none'"),
        ({"alg": "HS256"}, {}, "algorithm is 'HS256'"),
        ({"alg": ["RS256"]}, {}, "algorithm is"),
        ({"alg": None}, {}, "algorithm is 'None'"),
        ({"alg": "PS256"}, {}, "signature"),
        ({"alg": "ES256"}, {}, "no key with this id"),
        ({"kid": "another"}, {}, "no key with this id"),
        ({"kid": 5}, {}, "kid is not a string"),
        ({"crit": ["exp"]}, {}, "requires an extension"),
        ({"b64": False}, {}, "requires an extension"),
        ({"typ": "logout+jwt"}, {}, "not an access token"),
        ({"typ": 5}, {}, "not an access token"),
    ],
)
async def test_a_token_that_is_not_what_it_should_be_is_refused(
    trust: Trust, issuer: IssuerServer, header: dict[str, Any], claims: dict[str, Any], why: str
) -> None:
    text = signed(claims_of(issuer.url, **claims), rsa(), "RS256", **header)

    assert why in await refusal(trust(), text)


async def test_nobody_else_can_sign_for_an_issuer(trust: Trust, issuer: IssuerServer) -> None:
    tokens = trust()
    head, body, signature = issuer.token().split(".")
    other = encoded(json.dumps(claims_of(issuer.url, sub="bob")).encode()).decode()
    by_secret = signed(claims_of(issuer.url), None, "HS256", kid="rsa").rpartition(".")[0]
    public = hmac.digest(rsa().as_pem(private=False), by_secret.encode(), "sha256")
    by_public_key = f"{by_secret}.{encoded(public).decode()}"
    by_another_key = signed(claims_of(issuer.url), rsa("other"), "RS256", kid="rsa")

    for text in (f"{head}.{other}.{signature}", f"{head}.{body}.{signature[:-8]}", by_another_key, by_public_key):
        assert await refusal(tokens, text)


@pytest.mark.parametrize("brought", [{"jwk": OWN_JWK}, {"jku": "{url}/own/jwks.json"}, {"x5u": "{url}/own"}])
async def test_a_key_that_a_token_brings_along_is_never_used(
    trust: Trust, issuer: IssuerServer, brought: dict[str, Any]
) -> None:
    header = {
        name: value.format(url=issuer.url) if isinstance(value, str) else value for name, value in brought.items()
    }
    own = ec("own")

    why = await refusal(trust(), signed(claims_of(issuer.url), own, "ES256", **header))

    assert why == "its issuer has no key with this id and algorithm"
    assert issuer.asked == ["/.well-known/jwks.json"]


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "a.b.c",
        "e30.e30.e30",
        "eyJhbGciOiJSUzI1NiJ9..",
        "eyJhbGciOiJSUzI1NiJ9.W10.AA",
        "\udc80.\ud800.x",
        "eyJhbGciOiJSUzI1NiJ9.e30.A A",
        ".".join(["W1tb" * 1000, "W1tb" * 900, "x"]),
        ".".join(["x" * 5000] * 2 + ["x"]),
    ],
)
async def test_what_is_no_token_is_refused(trust: Trust, issuer: IssuerServer, text: str) -> None:
    assert await refusal(trust(), text)
    assert issuer.asked == []


async def test_a_token_of_ten_kilobytes_is_refused_unread(trust: Trust, issuer: IssuerServer) -> None:
    assert "8192 bytes" in await refusal(trust(), issuer.token(more="x" * 10_000))


@pytest.mark.parametrize(
    "published",
    [
        [{"kty": "oct", "kid": "rsa", "k": "c2VjcmV0"}],
        [{**rsa().as_dict(private=False), "use": "enc"}],
        [{**rsa().as_dict(private=False), "key_ops": ["encrypt"]}],
        [{"kty": "RSA", "kid": "rsa", "n": 5, "e": "AQAB"}, "nonsense", None, {"kty": "EC", "crv": "P-1"}, {}],
        [{"kty": "RSA", "kid": "rsa", "n": "3Q", "e": "AQAB"}],
    ],
)
async def test_keys_that_are_no_public_keys_for_signatures_are_passed_over(
    trust: Trust, issuer: IssuerServer, published: list[Any]
) -> None:
    issuer.published = published

    with pytest.raises(Unavailable):
        await trust().authenticate(issuer.token())


async def test_a_key_is_used_for_the_algorithm_that_it_is_published_for(trust: Trust, issuer: IssuerServer) -> None:
    issuer.published = [{**rsa().as_dict(private=False), "alg": "RS256"}]

    assert await refusal(trust(), issuer.token(None, "PS256")) == "its issuer has no key with this id and algorithm"


async def test_a_token_that_names_no_key_is_checked_with_those_that_fit(
    engine: Engine, trust: Trust, issuer: IssuerServer
) -> None:
    issuer.keys = [rsa("other"), ec(), rsa()]
    text = signed(claims_of(issuer.url), rsa(), "RS256", kid=None, typ=None)

    assert (await trust(engine.tenants).authenticate(text)).user == "ann"


async def test_a_rotation_needs_no_restart(engine: Engine, trust: Trust, issuer: IssuerServer, now: Clock) -> None:
    tokens = trust(engine.tenants)
    old = issuer.token()
    await tokens.authenticate(old)
    issuer.keys = [rsa("other")]
    new = issuer.token()
    too_early = await refusal(tokens, new)

    now.passed = PAUSE
    found = await tokens.authenticate(new)

    assert too_early == "its issuer has no key with this id and algorithm"
    assert found.user == "ann"
    now.passed = CACHE_SECONDS
    assert await refusal(tokens, old) == "its issuer has no key with this id and algorithm"


async def test_names_of_keys_that_somebody_makes_up_cause_one_look(trust: Trust, issuer: IssuerServer) -> None:
    tokens = trust()
    texts = [signed(claims_of(issuer.url), rsa(), "RS256", kid=f"made up {n}") for n in range(100)]

    refused = await asyncio.gather(*(refusal(tokens, text) for text in texts))

    assert set(refused) == {"its issuer has no key with this id and algorithm"}
    assert len(issuer.asked) == 1


async def test_keys_are_fetched_once_for_all_who_wait_and_whoever_leaves_takes_them_from_nobody(
    engine: Engine, trust: Trust, issuer: IssuerServer
) -> None:
    issuer.waits = asyncio.Event()
    tokens = trust(engine.tenants)
    callers = [asyncio.create_task(tokens.authenticate(issuer.token(sub=f"user {n}"))) for n in range(20)]
    async with asyncio.timeout(5):
        await issuer.arrivals.get()

    callers[0].cancel()
    issuer.waits.set()

    found = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(each, Principal) for each in found[1:])
    assert len(issuer.asked) == 1


async def test_while_its_issuer_is_away_the_keys_last_for_hours(
    engine: Engine, trust: Trust, issuer: IssuerServer, now: Clock
) -> None:
    tokens = trust(engine.tenants)
    text = issuer.token(exp=int(time() + 2 * STALE))
    await tokens.authenticate(text)
    issuer.away = True
    now.passed = STALE - 60
    behind = await tokens.authenticate(text)
    await refusal(tokens, signed(claims_of(issuer.url), rsa(), "RS256", kid="unknown"))  # waits for the look under way
    failures = tokens.failures

    now.passed = STALE + 60
    with pytest.raises(Unavailable, match="cannot be verified now"):
        await tokens.authenticate(text)
    issuer.away = False
    now.passed += PAUSE

    assert await tokens.authenticate(text) == behind
    assert "the server returned 503" in failures[0]
    assert not tokens.failures


async def test_keys_are_renewed_behind_the_callers_backs(
    engine: Engine, trust: Trust, issuer: IssuerServer, now: Clock
) -> None:
    tokens = trust(engine.tenants)
    await tokens.authenticate(issuer.token())
    issuer.waits = asyncio.Event()
    now.passed = FRESH

    found = await tokens.authenticate(issuer.token(sub="bob"))

    assert found.user == "bob"
    async with asyncio.timeout(5):
        assert [await issuer.arrivals.get() for _ in range(2)] == ["/.well-known/jwks.json"] * 2
    issuer.waits.set()


async def test_an_issuer_that_was_never_reached_is_no_reason_to_call_a_token_wrong(
    trust: Trust, issuer: IssuerServer
) -> None:
    issuer.away = True
    tokens = trust()

    for _ in range(3):
        with pytest.raises(Unavailable, match="cannot be verified now"):
            await tokens.authenticate(issuer.token())

    assert len(issuer.asked) == 1


async def test_what_is_remembered_of_a_token_does_not_outlive_it(
    engine: Engine, trust: Trust, issuer: IssuerServer, now: Clock
) -> None:
    tokens = trust(engine.tenants, leeway=0)
    text = issuer.token(exp=int(time()) + 30)
    await tokens.authenticate(text)
    now.passed = 28
    await tokens.authenticate(text)

    now.passed = 31

    assert await refusal(tokens, text) == "it has expired"


async def test_what_is_remembered_of_tokens_stays_bounded(
    engine: Engine, trust: Trust, issuer: IssuerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "MAX_CACHED_TOKENS", 3)
    tokens = trust(engine.tenants)

    for n in range(10):
        await tokens.authenticate(issuer.token(sub=f"user {n}"))

    assert len(tokens._known) == 3  # pyright: ignore[reportPrivateUsage]


@pytest.mark.req("SAFE-02")
async def test_a_token_s_tenant_must_exist(engine: Engine, trust: Trust, issuer: IssuerServer) -> None:
    acme = await engine.tenants.create("acme")
    tokens = trust(engine.tenants, tenant_claim="org")

    assert (await tokens.authenticate(issuer.token(org="acme"))).tenant == acme.id
    assert await refusal(tokens, issuer.token(org="other")) == "the tenant 'other' does not exist"
    assert await refusal(tokens, issuer.token(org="A B")) == "the tenant 'A B' does not exist"


@pytest.mark.req("MCP-07")
async def test_a_token_can_speak_for_an_agent(engine: Engine, trust: Trust, issuer: IssuerServer) -> None:
    tokens = trust(engine.tenants, agent_claim="azp")

    found = await tokens.authenticate(issuer.token(azp="support"))

    assert found == Principal(await engine.tenants.id_of("default"), "ann", USER, "support")


@pytest.mark.parametrize(
    "place", ["{path}/.well-known/openid-configuration", "/.well-known/oauth-authorization-server{path}"]
)
@pytest.mark.parametrize("path", ["", "/realms/acme"])
async def test_keys_are_found_by_the_issuer_s_metadata(
    engine: Engine, issuer: IssuerServer, fetch: Fetch, place: str, path: str
) -> None:
    name = issuer.url + path
    issuer.metadata[place.format(path=path)] = {"issuer": name, "jwks_uri": f"{issuer.url}/elsewhere/jwks.json"}
    access = AccessSettings(issuers=(Issuer(issuer=name, audience=("holdfast",)),))
    tokens = Tokens(access, engine.tenants, fetch)

    found = await tokens.authenticate(signed(claims_of(name), rsa(), "RS256"))

    assert found.user == "ann"
    assert issuer.asked[-1] == "/elsewhere/jwks.json"


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"issuer": "https://evil.example"}, "names another issuer"),
        ({"jwks_uri": None}, "no valid jwks_uri"),
        ({"jwks_uri": "file:///etc/passwd"}, "no valid jwks_uri"),
        ({"jwks_uri": "http://127.0.0.1:1/jwks.json"}, "not public"),
        ({"jwks_uri": "http://169.254.169.254/jwks.json"}, "not public"),
    ],
)
async def test_metadata_leads_to_no_private_address_and_to_no_other_issuer(
    trust: Trust, issuer: IssuerServer, metadata: dict[str, Any], why: str
) -> None:
    place = "/.well-known/openid-configuration"
    issuer.metadata[place] = {"issuer": issuer.url, "jwks_uri": issuer.jwks_url, **metadata}
    tokens = trust(jwks_url=None)

    with pytest.raises(Unavailable):
        await tokens.authenticate(issuer.token())

    assert why in tokens.failures[0]
    assert issuer.asked == [place]


def test_a_public_key_is_no_secret(trust: Trust) -> None:
    pem = rsa().as_pem(private=False).decode()

    with pytest.raises(BadSetting, match="public key") as caught:
        trust(secret=pem, jwks_url=None)

    assert "BEGIN" not in str(caught.value)


def test_an_issuer_without_an_audience_needs_the_server_s_address(trust: Trust) -> None:
    with pytest.raises(BadSetting, match="has no audience"):
        trust(audience=())


@pytest.mark.parametrize("audience", ["https://h/x", "https://h/x/", "https://h/x/mcp"])
async def test_without_an_audience_a_token_is_for_the_server_s_address(
    engine: Engine, issuer: IssuerServer, fetch: Fetch, audience: str
) -> None:
    access = AccessSettings(issuers=(Issuer(issuer=issuer.url, jwks_url=issuer.jwks_url),))
    tokens = Tokens(access, engine.tenants, fetch, resource="https://h/x")

    assert (await tokens.authenticate(issuer.token(aud=audience))).user == "ann"
    assert await refusal(tokens, issuer.token(aud="https://h/xy/mcp")) == "its audience is another server"
