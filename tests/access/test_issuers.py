"""The settings of issuers."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.config import MASK, Config, load_config
from holdfast.core.errors import BadSetting
from holdfast.core.issuers import Issuer
from holdfast.core.reference import settings_page

pytestmark = pytest.mark.req("ENG-06")

SECRET = "hunter2" * 5
TOML = """
[[access.issuers]]
issuer = "https://login.example.com/"
audience = "holdfast"
jwks-url = "https://login.example.com/keys"

[[access.issuers]]
issuer = "platform"
secret = "{secret}"
audience = ["authenticated"]
"""


def load(folder: Path, *, toml: str = "", **environ: str) -> Config:
    if toml:
        (folder / "holdfast.toml").write_text(toml)
    return load_config({"data": folder}, environ=environ, cwd=folder)


def refusal(folder: Path, issuer: Any) -> BadSetting:
    with pytest.raises(BadSetting) as caught:
        load(folder, HOLDFAST_ACCESS__ISSUERS=issuer if isinstance(issuer, str) else json.dumps(issuer))
    return caught.value


def test_issuers_are_tables_in_the_file_and_json_in_the_environment_or_in_a_file_of_their_own(tmp_path: Path) -> None:
    given = [
        {"issuer": "https://login.example.com/", "audience": "holdfast", "jwks_url": "https://login.example.com/keys"},
        {"issuer": "platform", "secret": SECRET, "audience": "authenticated"},
    ]
    (tmp_path / "issuers.json").write_text(json.dumps(given))

    by_environment = load(tmp_path, HOLDFAST_ACCESS__ISSUERS=json.dumps(given))
    by_secret_file = load(tmp_path, HOLDFAST_ACCESS__ISSUERS_FILE="issuers.json")
    by_file = load(tmp_path, toml=TOML.format(secret=SECRET))

    assert by_file.access == by_environment.access == by_secret_file.access
    assert [each.issuer for each in by_file.access.issuers] == ["https://login.example.com/", "platform"]


def test_issuers_are_shown_as_they_were_given_without_their_secrets(tmp_path: Path) -> None:
    config = load(tmp_path, toml=TOML.format(secret=SECRET))

    row = next(row for row in config.describe() if row.key == "access.issuers")

    assert isinstance(row.value, list)
    assert row.value[1] == {"issuer": "platform", "audience": ["authenticated"], "secret": MASK}
    assert row.origin == f"holdfast.toml {tmp_path / 'holdfast.toml'}"
    assert "hunter2" not in f"{config!r} {config.describe()}"


def test_an_unknown_name_in_an_issuer_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    error = refusal(tmp_path, [{"issuer": "https://login.example.com", "audiance": "x", "secret": SECRET}])

    assert error.details["nearest"] == "access.issuers.audience"
    assert error.details["origin"] == "environment HOLDFAST_ACCESS__ISSUERS"
    assert "hunter2" not in str(error)


@pytest.mark.req("MCP-06")
@pytest.mark.parametrize(
    ("issuer", "why"),
    [
        ("{", "JSON"),
        ("5", "tuple"),
        ([5], "entry 1"),
        ({}, "issuer of entry 1"),
        ({"issuer": "somebody"}, "should be a URL"),
        ({"issuer": "https://u:p@h"}, "should be a URL"),
        ({"issuer": "https://h", "jwks_url": "ftp://h"}, "jwks_url of entry 1"),
        ({"issuer": "https://h", "secret": "hunter2"}, "32 characters"),
        ({"issuer": "https://h", "secret": SECRET, "jwks_url": "https://h"}, "both secret and jwks_url"),
        ({"issuer": "https://h", "algorithms": ["none"]}, "'none' is not a supported algorithm"),
        ({"issuer": "https://h", "algorithms": ["RS256", "HS256"]}, "'HS256' is not a supported algorithm"),
        (
            {"issuer": "https://h", "secret": SECRET, "algorithms": ["HS256", "RS256"]},
            "'RS256' is not a supported algorithm",
        ),
        ({"issuer": "https://h", "tenant": "a", "tenant_claim": "org"}, "both tenant and tenant_claim"),
        ({"issuer": "https://h", "tenants": ["a"]}, "tenants requires a tenant_claim"),
        ({"issuer": "https://h", "scopes": []}, "scopes of entry 1"),
        ({"issuer": "https://h", "scopes": ["operator"]}, "scopes of entry 1"),
        ({"issuer": "https://h", "leeway": 601}, "leeway of entry 1"),
        ({"issuer": "https://h", "jwks-url": "https://h/a", "jwks_url": "https://h/b"}, "contains a name twice"),
        ([{"issuer": "https://h"}, {"issuer": "https://h", "secret": SECRET}], "contains https://h twice"),
    ],
)
def test_an_issuer_that_makes_no_sense_is_refused_without_showing_its_secret(
    tmp_path: Path, issuer: Any, why: str
) -> None:
    error = refusal(tmp_path, issuer)

    assert error.details["key"] == "access.issuers"
    assert why in str(error)
    assert "hunter2" not in str(error)


def test_every_part_of_an_issuer_is_explained() -> None:
    page = settings_page()

    assert all(part.description for part in Issuer.model_fields.values())
    assert all(f"\n| `{name}` |" in page for name in Issuer.model_fields)


@pytest.mark.parametrize("url", ["holdfast.example", "https://h/path", "https://h?x", "https://u@h", "ftp://h"])
def test_the_public_address_is_an_origin(tmp_path: Path, url: str) -> None:
    with pytest.raises(BadSetting, match=r"server\.public_url"):
        load(tmp_path, HOLDFAST_SERVER__PUBLIC_URL=url)

    config = load(tmp_path, HOLDFAST_SERVER__PUBLIC_URL="https://h.example:8443/", HOLDFAST_SERVER__ROOT_PATH="x")
    assert config.resource == "https://h.example:8443/x"


@pytest.mark.req("MCP-06")
@pytest.mark.parametrize(
    ("scopes", "why"),
    [
        ('holdfast:read" error="x', "is not a scope"),
        ("holdfast:read offline", "is not a scope"),
        ("ré", "is not a scope"),
        ("holdfast:read,offline_access", "clients ask their issuer for it by themselves"),
    ],
)
def test_clients_are_told_to_ask_for_scopes_of_this_server_alone(tmp_path: Path, scopes: str, why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        load(tmp_path, HOLDFAST_ACCESS__SCOPES_SUPPORTED=scopes)
