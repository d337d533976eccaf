"""Discovery of authorization servers: what an MCP server says of itself is not believed beyond its own address."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.errors import Forbidden, TimedOut, Unavailable
from holdfast.execution.consent.discovery import (
    METADATA,
    ConsentDiscovery,
    ConsentSource,
    ConsentTarget,
    challenge_of,
    covers,
)
from holdfast.execution.consent.web import ask
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.identity.authorization_servers import AuthorizationServers
from holdfast.skills.request import Backend, BackendIdentity, McpServer
from tests.execution.backend import Service

pytestmark = pytest.mark.req("MCP-06", "MCP-07")

ISSUER_METADATA = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class Place:
    """An MCP server, its authorization server, and a service that the engine may not reach."""

    server: Service
    authority: Service
    inner: Service
    egress: Egress

    def describe(self, **more: Any) -> None:
        """Have the MCP server describe itself, with other members of its metadata."""
        self.server.will_answer("/mcp", status=401, headers={"WWW-Authenticate": "Bearer"})
        known = {"resource": f"{self.server.url}/mcp", "authorization_servers": [self.authority.url], **more}
        self.server.will_answer(f"{METADATA}/mcp", text=json.dumps(known), content_type="application/json")

    def issue(self, **more: Any) -> None:
        """Have the authorization server describe itself, with other members of its metadata."""
        url = self.authority.url
        known = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "code_challenge_methods_supported": ["S256"],
            **more,
        }
        self.authority.will_answer(ISSUER_METADATA, text=json.dumps(known), content_type="application/json")

    async def find(self) -> ConsentTarget:
        """Where users of the MCP server consent."""
        identity = BackendIdentity("user")
        backend = Backend(source="notes", mcp=McpServer(url=f"{self.server.url}/mcp"), identity=identity)
        discovery = ConsentDiscovery(self.egress, AuthorizationServers(self.egress))
        return await discovery.find(ConsentSource(1, "notes", backend, identity))


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """The servers; the first two have described themselves."""
    async with AsyncExitStack() as stack:
        services = [await stack.enter_async_context(Service().serving()) for _ in range(3)]
        server, authority, inner = services
        allowed = AllowedHosts.parse([f"127.0.0.1:{each.port}" for each in (server, authority)])
        place = Place(server, authority, inner, await stack.enter_async_context(Egress(allowed)))
        place.describe()
        place.issue()
        yield place


async def test_an_mcp_server_names_its_authorization_server_and_the_scopes(place: Place) -> None:
    place.describe(scopes_supported=["notes.read", "not a scope", "notes.write"])

    target = await place.find()

    assert target.token_url == f"{place.authority.url}/token"
    assert target.resource == f"{place.server.url}/mcp"
    assert target.scopes == ("notes.read", "not", "a", "scope", "notes.write")


async def test_a_challenge_among_others_names_the_metadata(place: Place) -> None:
    named = f"{place.server.url}/elsewhere"
    headers = [("WWW-Authenticate", 'Basic realm="a"'), ("WWW-Authenticate", f'Bearer resource_metadata="{named}"')]

    async def refuse(_: web.Request) -> web.Response:
        response = web.Response(status=401)
        for name, value in headers:
            response.headers.add(name, value)
        return response

    place.server.answers["/elsewhere"] = place.server.answers.pop(f"{METADATA}/mcp")
    place.server.will_answer(f"{METADATA}/mcp", status=404)
    place.server.will_answer(METADATA, status=404)
    place.server.will_answer("/mcp", refuse)

    target = await place.find()

    assert target.token_url == f"{place.authority.url}/token"


FOREIGN = ["https://bank.example/mcp", "{url}/mcp/deeper", "{url}/mc", "{url}.evil.example/mcp", "not a URL"]


@pytest.mark.parametrize("resource", FOREIGN)
async def test_metadata_of_another_resource_are_refused(place: Place, resource: str) -> None:
    place.describe(resource=resource.format(url=place.server.url))

    with pytest.raises(Unavailable, match="its metadata are those of"):
        await place.find()

    assert place.authority.asked == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"code_challenge_methods_supported": ["plain"]}, "does not support PKCE"),
        ({"code_challenge_methods_supported": None}, "does not support PKCE"),
        ({"issuer": "https://bank.example"}, "those of another issuer"),
        ({"token_endpoint": "file:///etc/passwd"}, "not a URL"),
    ],
)
async def test_an_unsafe_authorization_server_is_refused(place: Place, change: dict[str, Any], why: str) -> None:
    place.issue(**change)

    with pytest.raises(Unavailable) as refused:
        await place.find()

    assert why in f"{refused.value.what} {refused.value.why}"


@pytest.mark.parametrize("reached", ["challenge", "redirect of the metadata", "issuer", "redirect of the issuer"])
async def test_discovery_reaches_no_private_address(place: Place, reached: str) -> None:
    inner = place.inner.url
    match reached:
        case "challenge":
            challenge = {"WWW-Authenticate": f'Bearer resource_metadata="{inner}/"'}
            place.server.will_answer("/mcp", status=401, headers=challenge)
        case "redirect of the metadata":
            place.server.will_answer(f"{METADATA}/mcp", status=302, headers={"Location": inner})
            place.server.will_answer(METADATA, status=307, headers={"Location": inner})
        case "issuer":
            place.describe(authorization_servers=[inner])
        case _:
            place.authority.will_answer(ISSUER_METADATA, status=302, headers={"Location": inner})

    with pytest.raises((Forbidden, Unavailable)):
        await place.find()

    assert place.inner.asked == []


async def test_a_huge_answer_is_refused(place: Place) -> None:
    place.server.will_answer("/huge", text=json.dumps("x" * 10_000_000), content_type="application/json")

    with pytest.raises(Unavailable, match="more than 262,144 bytes"):
        await ask(place.egress, "GET", f"{place.server.url}/huge")


async def test_a_server_that_does_not_answer_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.execution.consent.web.TIMEOUT", 0.1)

    async def never(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    place.server.will_answer("/slow", never)

    with pytest.raises(TimedOut, match=r"within 0\.1 seconds"):
        await ask(place.egress, "GET", f"{place.server.url}/slow")


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('Bearer scope="a b", resource_metadata="https://x/y"', {"scope": "a b", "resource_metadata": "https://x/y"}),
        ('Basic realm="a", Bearer scope=c', {"scope": "c"}),
        ('bearer error="a \\"b\\""', {"error": 'a "b"'}),
        ('Bearer scope="first", Bearer scope="second"', {"scope": "first"}),
        ('Basic realm="bearer"', {}),
        ("Bearer", {}),
        ("", {}),
    ],
)
def test_a_challenge_for_bearer_tokens_is_read(header: str, found: dict[str, str]) -> None:
    assert challenge_of(header) == found


@pytest.mark.parametrize(
    ("resource", "address", "covered"),
    [
        ("https://a.example", "https://a.example/mcp", True),
        ("https://a.example/mcp/", "https://a.example/mcp", True),
        ("https://a.example/mcp", "https://a.example/mcp/deeper", True),
        ("https://a.example/mcp", "https://a.example/mcp2", False),
        ("https://a.example/mcp", "https://a.example/", False),
        ("http://a.example/mcp", "https://a.example/mcp", False),
        ("https://a.example:444/mcp", "https://a.example/mcp", False),
        ("https://user@a.example/mcp", "https://a.example/mcp", False),
    ],
)
def test_a_resource_covers_what_is_below_its_address(resource: str, address: str, covered: bool) -> None:
    assert covers(resource, address) is covered
