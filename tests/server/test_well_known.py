from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.core.issuers import AccessSettings, Issuer
from tests.access.issuing import SECRET
from tests.server.wire import Site

pytestmark = pytest.mark.req("MCP-06")

METADATA = "/.well-known/oauth-protected-resource"
ISSUERS: list[dict[str, Any]] = [
    {"issuer": "https://login.example.com/", "audience": "holdfast"},
    {"issuer": "somebody", "audience": "holdfast", "secret": SECRET},
]


@pytest.fixture
def issuers() -> list[dict[str, Any]]:
    """Whose tokens are taken; parametrise it to change them."""
    return ISSUERS


@pytest.fixture
def config(config: Config, issuers: list[dict[str, Any]]) -> Config:
    """The settings, with issuers."""
    access = AccessSettings(issuers=tuple(Issuer(**issuer) for issuer in issuers))
    return config.model_copy(update={"access": access})


@pytest.mark.parametrize(("path", "resource"), [("", ""), ("/mcp", "/mcp"), ("/rpc", "/rpc")])
async def test_anybody_is_told_whose_tokens_are_taken(site: Site, path: str, resource: str) -> None:
    reply = await site.ask("GET", METADATA + path, headers={"Host": f"127.0.0.1:{site.port}"})

    assert reply.json() == {
        "resource": f"http://127.0.0.1:{site.port}{resource}",
        "authorization_servers": ["https://login.example.com/"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Holdfast",
        "scopes_supported": ["holdfast:read", "holdfast:write"],
    }


@pytest.mark.parametrize("settings", [{"public_url": "https://agents.example.com", "root_path": "/x"}])
@pytest.mark.parametrize(
    ("path", "resource"),
    [
        (f"/x{METADATA}/mcp", "/x/mcp"),
        (f"{METADATA}/x/mcp", "/x/mcp"),
        (f"{METADATA}/mcp", "/x/mcp"),
        (f"/x{METADATA}", "/x"),
        (f"{METADATA}/x", "/x"),
        (f"{METADATA}/x/rpc", "/x/rpc"),
    ],
)
async def test_the_public_address_is_told_whatever_a_request_came_to(
    site: Site, settings: dict[str, Any], path: str, resource: str
) -> None:
    reply = await site.ask("GET", path)
    refused = await site.ask("POST", "/x/mcp")

    assert reply.json()["resource"] == f"https://agents.example.com{resource}"
    challenge = f'resource_metadata="https://agents.example.com/x{METADATA}/mcp"'
    assert challenge in refused.headers["www-authenticate"]


async def test_there_is_no_other_resource(site: Site) -> None:
    reply = await site.ask("GET", f"{METADATA}/elsewhere")

    assert (reply.status, reply.code) == (404, "not_found")


@pytest.mark.parametrize("issuers", [[]])
@pytest.mark.parametrize("path", ["", "/mcp"])
async def test_where_no_tokens_are_taken_nothing_is_told(site: Site, issuers: list[dict[str, Any]], path: str) -> None:
    reply = await site.ask("GET", METADATA + path)
    refused = await site.ask("GET", "/api/me", key="hf_wrong")

    assert (reply.status, reply.code) == (404, "not_found")
    assert "resource_metadata" not in refused.headers["www-authenticate"]
