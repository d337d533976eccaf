"""What the options of `holdfast sources` say of an identity."""

from typing import Any

import pytest

from holdfast.cli.source_identity import GivenIdentity, describe_identity
from holdfast.core.errors import InvalidInput

OLD = {"kind": "token_exchange", "issuer": "https://login.example", "client_id": "us", "audience": "shop"}
CHANGES: list[tuple[str | None, dict[str, Any], Any, Any]] = [
    (None, {}, None, None),
    (None, {}, OLD, OLD),
    ("none", {}, OLD, None),
    ("signed", {}, None, {"kind": "signed"}),
    ("signed", {}, OLD, {"kind": "signed"}),
    (None, {"audience": "bank"}, OLD, {**OLD, "audience": "bank"}),
    ("token-exchange", {"fallback": "client-credentials"}, OLD, {**OLD, "fallback": "client_credentials"}),
    (None, {"fallback": "none"}, {**OLD, "fallback": "signed"}, {**OLD, "fallback": None}),
]


@pytest.mark.parametrize(("kind", "options", "old", "new"), CHANGES)
def test_omitted_options_are_unchanged_and_another_kind_begins_anew(
    kind: str | None, options: dict[str, Any], old: Any, new: Any
) -> None:
    assert GivenIdentity(kind, options).changed(old) == new


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        ("secret", {}, "there is no identity 'secret'"),
        ("none", {"audience": "shop"}, "takes no --audience"),
        (None, {"token_url": "https://a.example"}, "--token-url needs an identity"),
        (None, {"scopes": ["a"]}, "--scope needs an identity"),
    ],
)
def test_options_without_an_identity_are_refused(kind: str | None, options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        GivenIdentity(kind, options).changed(None)


def test_an_identity_is_told_in_a_line() -> None:
    identity = {**OLD, "client_secret": "login", "scopes": ["read", "write"], "actor": True, "fallback": "signed"}

    told = describe_identity(identity)

    assert told == (
        "token-exchange, for shop, by https://login.example, as us, with the secret login, scopes read write, "
        "this server is the actor, otherwise signed"
    )
