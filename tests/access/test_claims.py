from typing import Any

import pytest

from holdfast.access.claims import TokenClaims, read_claims
from holdfast.core.errors import Unauthenticated
from holdfast.core.issuers import Issuer

pytestmark = pytest.mark.req("MCP-06", "SAFE-03")

NOW = 1_800_000_000.0
READ, WRITE, BOTH = frozenset({"read"}), frozenset({"write"}), frozenset({"read", "write"})


def judged(claims: dict[str, Any] | None = None, **settings: Any) -> TokenClaims:
    """What is made of a token that is good for a minute, with these claims."""
    given = {"sub": "ann", "aud": "us", "exp": NOW + 60, **(claims or {})}
    given = {name: value for name, value in given.items() if value is not None}
    issuer = Issuer(issuer="https://login.example.com", **settings)
    return read_claims(given, issuer, audiences={"us"}, now=NOW)


def test_a_token_says_who_its_holder_is_in_the_tenant_of_its_issuer() -> None:
    said = judged(tenant="acme")

    assert said == TokenClaims("acme", "ann", BOTH, BOTH, None, until=NOW + 120)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": None}, "its audience is another server"),
        ({"aud": "them"}, "its audience is another server"),
        ({"aud": ["them", 5, None]}, "its audience is another server"),
        ({"aud": {"us": 1}}, "its audience is another server"),
        ({"aud": "US"}, "its audience is another server"),
        ({"exp": None}, "no expiry time"),
        ({"exp": NOW - 60}, "has expired"),
        ({"exp": "never"}, "is not a time"),
        ({"exp": True}, "is not a time"),
        ({"exp": 1e300}, "is not a time"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"iat": NOW + 61}, "not valid yet"),
        ({"iat": [NOW]}, "is not a time"),
        ({"cnf": {"jkt": "thumb"}}, "bound to a key"),
        ({"sub": None}, "its sub is not a name"),
        ({"sub": ""}, "its sub is not a name"),
        ({"sub": 5}, "its sub is not a name"),
        ({"sub": "x" * 256}, "its sub is not a name"),
        ({"sub": "a\0b"}, "its sub is not a name"),
        ({"sub": "a\nb"}, "its sub is not a name"),
        ({"sub": "local"}, "which is reserved"),
    ],
)
def test_what_is_not_for_us_or_not_for_now_or_names_nobody_is_refused(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(Unauthenticated, match=why):
        judged(claims)


@pytest.mark.parametrize(
    "claims", [{"exp": NOW - 59}, {"nbf": NOW + 60}, {"iat": NOW + 60}, {"aud": ["them", "us"]}, {"iat": 0}]
)
def test_clocks_may_differ_by_a_minute_and_a_token_be_for_others_too(claims: dict[str, Any]) -> None:
    assert judged(claims).user == "ann"


def test_how_much_clocks_may_differ_is_a_setting() -> None:
    with pytest.raises(Unauthenticated, match="has expired"):
        judged({"exp": NOW - 1}, leeway=0)

    assert judged({"exp": NOW - 299}, leeway=300).until == NOW + 1


@pytest.mark.parametrize(
    ("scope", "scopes"),
    [
        (None, BOTH),
        ("openid profile", BOTH),
        ("openid holdfast:read", READ),
        ("holdfast:read holdfast:write", BOTH),
        (["holdfast:write", 5, "email"], BOTH),
        ("holdfast:admin", BOTH),
        ("holdfast:act-as", frozenset[str]()),
        ("holdfast:operator holdfast:read", READ),
        ("holdfast:nonsense", frozenset[str]()),
        ({"holdfast:read": 1}, BOTH),
    ],
)
def test_a_token_narrows_what_its_holder_may_and_never_widens_it(scope: object, scopes: frozenset[str]) -> None:
    assert judged({"scope": scope}).scopes == scopes


@pytest.mark.parametrize(
    "claims",
    [
        {"scp": "openid holdfast:read"},
        {"scp": ["holdfast:read"]},
        {"scope": "openid", "scp": ["holdfast:read"]},
        {"scope": "holdfast:read", "scp": []},
    ],
)
def test_scopes_are_found_in_either_usual_claim(claims: dict[str, Any]) -> None:
    assert judged(claims).scopes == READ


def test_what_goes_beyond_a_user_s_is_given_only_to_tokens_that_say_so() -> None:
    settings: dict[str, Any] = {"scopes": ("read", "write", "admin"), "scope_claim": "roles"}

    usual, admin = judged({"scope": "holdfast:admin"}, **settings), judged({"roles": ["holdfast:admin"]}, **settings)

    assert usual.scopes == BOTH
    assert admin.scopes == {"read", "write", "admin"}


def test_a_scope_includes_the_narrower_ones_up_to_what_the_issuer_may_grant() -> None:
    write = judged({"scope": "holdfast:write"})
    admin = judged({"scope": "holdfast:admin"}, scopes=("read", "admin"))

    assert (write.scopes, admin.scopes) == (BOTH, {"read", "admin"})


def test_a_claim_names_the_tenant_and_may_lie_deeper() -> None:
    claims = {"app_metadata": {"org": "acme"}, "https://x.example/org": "other"}

    assert judged(claims, tenant_claim="app_metadata.org").tenant == "acme"
    assert judged(claims, tenant_claim="https://x.example/org").tenant == "other"


@pytest.mark.req("SAFE-02")
@pytest.mark.parametrize("org", [None, 5, "", "other", ["acme"], {"acme": 1}])
def test_an_issuer_speaks_for_no_tenant_but_those_that_it_may_name(org: object) -> None:
    with pytest.raises(Unauthenticated):
        judged({"org": org}, tenant_claim="org", tenants=("acme",))


@pytest.mark.req("MCP-07")
def test_a_claim_names_the_agent_which_never_administers() -> None:
    settings: dict[str, Any] = {"agent_claim": "agent", "scopes": ("read", "admin")}
    scope = "holdfast:read holdfast:admin"

    agent, user = judged({"agent": "support", "scope": scope}, **settings), judged({"scope": scope}, **settings)

    assert (agent.agent, agent.user, agent.scopes) == ("support", "ann", READ)
    assert (user.agent, user.scopes) == (None, {"read", "admin"})
    with pytest.raises(Unauthenticated, match="its agent is not a name"):
        judged({"agent": ""}, **settings)


def test_another_claim_can_name_the_user() -> None:
    assert judged({"email": "ann@example.com", "sub": None}, user_claim="email").user == "ann@example.com"
