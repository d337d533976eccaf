"""Requests to the token endpoints of authorization servers, and their metadata."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from holdfast.core.errors import Forbidden, HoldfastError, TimedOut, Unavailable
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.identity.authorization_servers import AuthorizationServers, read_metadata
from holdfast.execution.identity.token_endpoint import OAuthClient, TokenEndpoint, TokenRefused
from tests.oauth.authorization_server import SmallServer
from tests.oauth.keycloak import Keycloak, confidential_client

GRANT = {"grant_type": "client_credentials"}
CLIENT = OAuthClient("holdfast", "s3cret value")


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    """Connections that may reach this machine."""
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        yield egress


@pytest.mark.req("MCP-06")
async def test_keycloak_gives_a_token_for_client_credentials(keycloak: Keycloak, egress: Egress) -> None:
    with keycloak.realm(clients=[confidential_client("holdfast", "s3cret")]) as realm:
        url = await AuthorizationServers(egress).token_url(realm.issuer)
        answer = await TokenEndpoint(egress).request(url, GRANT, OAuthClient("holdfast", "s3cret"))

        with pytest.raises(TokenRefused) as refused:
            await TokenEndpoint(egress).request(url, GRANT, OAuthClient("holdfast", "wrong"))

    assert answer.access_token.count(".") == 2
    assert 240 < (answer.expires_in or 0) <= 300
    assert refused.value.error == "unauthorized_client"


async def test_the_secret_is_sent_as_basic_authentication_encoded_as_in_forms(
    egress: Egress, authority: SmallServer
) -> None:
    await TokenEndpoint(egress).request(authority.token_url, GRANT, CLIENT)

    assert authority.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"holdfast:s3cret+value").decode()
    assert authority.asked == [GRANT]


async def test_the_secret_is_sent_in_the_form_if_the_server_wants_it_there(
    egress: Egress, authority: SmallServer
) -> None:
    await TokenEndpoint(egress).request(authority.token_url, GRANT, OAuthClient("holdfast", "s3cret", "post"))

    assert authority.asked == [{**GRANT, "client_id": "holdfast", "client_secret": "s3cret"}]
    assert "Authorization" not in authority.headers[0]


async def test_an_error_has_what_the_server_says_without_the_secrets_of_the_request(
    egress: Egress, authority: SmallServer
) -> None:
    said = {"error": "invalid_grant", "error_description": f"the token abc.def.ghi of s3cret value{'.' * 400}"}
    authority.instead = web.json_response(said, status=400)

    with pytest.raises(TokenRefused) as refused:
        await TokenEndpoint(egress).request(authority.token_url, {**GRANT, "subject_token": "abc.def.ghi"}, CLIENT)

    assert refused.value.error == "invalid_grant"
    assert "invalid_grant: the token [secret] of [secret]" in str(refused.value)
    assert len(str(refused.value)) < 500


WRONG = [
    (web.Response(text="<html>Log in</html>", content_type="text/html"), "not a JSON object"),
    (web.json_response(["a", "list"]), "not a JSON object"),
    (web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "redirects"),
    (web.Response(status=503, text="down"), "status 503"),
    (web.json_response({"token_type": "Bearer"}), "no access_token"),
    (web.json_response({"access_token": "two\nlines", "token_type": "Bearer"}), "no access_token"),
    (web.json_response({"access_token": "a" * 20_000, "token_type": "Bearer"}), "no access_token"),
    (web.json_response({"access_token": "abc"}), "no token_type"),
    (web.json_response({"access_token": "abc", "token_type": "Bearer", "expires_in": "soon"}), "expires_in"),
    (web.Response(body=b"[" + b"1," * 100_000 + b"1]"), "more than"),
]


@pytest.mark.parametrize(("answer", "why"), WRONG, ids=[why for _, why in WRONG])
async def test_a_wrong_answer_is_refused(
    egress: Egress, authority: SmallServer, answer: web.Response, why: str
) -> None:
    authority.instead = answer

    with pytest.raises(Unavailable, match=why):
        await TokenEndpoint(egress).request(authority.token_url, GRANT, CLIENT)


async def test_a_server_that_does_not_answer_is_given_up(egress: Egress, authority: SmallServer) -> None:
    authority.waits = asyncio.Event()

    with pytest.raises(TimedOut, match=r"within 0\.2 seconds"):
        await TokenEndpoint(egress, timeout=0.2).request(authority.token_url, GRANT, CLIENT)

    authority.waits.set()


async def test_a_token_endpoint_at_a_private_address_is_refused(authority: SmallServer) -> None:
    async with Egress() as egress:
        with pytest.raises(Forbidden, match="not public"):
            await TokenEndpoint(egress).request(authority.token_url, GRANT, CLIENT)


async def test_no_repr_shows_a_secret_or_a_token(egress: Egress, authority: SmallServer) -> None:
    answer = await TokenEndpoint(egress).request(authority.token_url, GRANT, CLIENT)

    assert answer.access_token not in repr(answer)
    assert "s3cret" not in repr(CLIENT)


async def test_metadata_of_another_issuer_are_refused(egress: Egress, authority: SmallServer) -> None:
    authority.metadata = {"issuer": "https://login.example.com"}

    with pytest.raises(Unavailable, match="another issuer"):
        await AuthorizationServers(egress).token_url(authority.url)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b'{"issuer": "https://a.example", "token_endpoint": "http://a.example/token"}', "does not use TLS"),
        (b'{"issuer": "https://a.example", "token_endpoint": "/token"}', "not a URL"),
        (b'{"issuer": "https://a.example", "token_endpoint": 7}', "not the metadata"),
        (b"<html>", "not the metadata"),
    ],
)
def test_invalid_metadata_are_refused(document: bytes, why: str) -> None:
    with pytest.raises(HoldfastError, match=why):
        read_metadata("https://a.example", document)
