"""Callers' own tokens, which are passed on only where the operator allows it."""

from typing import Any

import pytest

from holdfast.core.config import Config
from holdfast.core.errors import InvalidInput
from holdfast.engine import Engine, open_engine
from holdfast.skills.request import Backend, BackendIdentity, McpServer
from holdfast.skills.sources.identity import is_listed
from holdfast.skills.sources.settings import SourceSettings, check_settings
from tests.execution.backend import Service
from tests.execution.identity.conftest import add_shop, call, told
from tests.execution.identity.test_token_exchange import token_of

PASSED = BackendIdentity("pass_through")
OAUTH: dict[str, Any] = {"issuer": "https://login.example", "client_id": "us", "client_secret": "client"}


def allowing(config: Config, *hosts: str) -> Config:
    """Settings that allow to pass callers' tokens to these hosts."""
    return config.model_copy(update={"execution": config.execution.model_copy(update={"pass_through": hosts})})


@pytest.mark.req("MCP-06")
async def test_a_caller_s_token_is_passed_to_a_host_of_the_setting(config: Config, shop: Service) -> None:
    async with open_engine(config=allowing(config, f"127.0.0.1:{shop.port}")) as opened:
        engine = opened.tenant(await opened.tenants.id_of("default"))
        await add_shop(engine, shop, PASSED)
        token = token_of("ann")

        value = await call(engine, token=token)
        refused = await call(engine)

    assert told(shop)[0]["Authorization"] == f"Bearer {token}"
    assert value["headers"]["authorization"] == "Bearer [secret]"
    assert "this caller has none" in refused


@pytest.mark.req("MCP-06")
async def test_a_source_cannot_pass_tokens_to_another_host(engine: Engine, shop: Service) -> None:
    with pytest.raises(InvalidInput, match=r"execution\.pass_through"):
        await add_shop(engine, shop, PASSED)
    await add_shop(engine, shop, None)
    with pytest.raises(InvalidInput, match=r"execution\.pass_through"):
        await engine.sources.change("shop", version=1, identity=PASSED)

    assert (await engine.sources.get("shop")).source.backend.identity is None


@pytest.mark.req("MCP-06")
async def test_a_token_is_no_longer_passed_when_the_operator_has_forbidden_it(config: Config, shop: Service) -> None:
    async with open_engine(config=allowing(config, "127.0.0.1")) as opened:
        await add_shop(opened.tenant(await opened.tenants.id_of("default")), shop, PASSED)

    async with open_engine(config=config) as opened:
        refused = await call(opened.tenant(await opened.tenants.id_of("default")), token=token_of("ann"))

    assert "may not be passed to" in refused
    assert shop.asked == []


@pytest.mark.parametrize(
    ("origin", "hosts", "listed"),
    [
        ("https://api.example", ["api.example"], True),
        ("https://api.example", ["API.example:443"], True),
        ("http://api.example:8080", ["api.example:8080"], True),
        ("http://api.example:8080", ["api.example:443"], False),
        ("https://evil.api.example", ["api.example"], False),
        ("https://api.example.evil", ["api.example"], False),
        ("http://[::1]:80", ["[::1]"], True),
        ("https://api.example", [], False),
    ],
)
def test_a_host_is_listed_by_its_name_with_its_port_or_without(origin: str, hosts: list[str], listed: bool) -> None:
    assert is_listed(origin, hosts) is listed


SERVER = McpServer(url="https://mcp.example/mcp")
REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"kind": "user", "audience": "shop"}, {}, "takes no audience"),
    ({"kind": "user", "client_secret": "shop"}, {}, "a client secret without a client id"),
    ({"kind": "user"}, {"mcp": McpServer(url=SERVER.url, shared=True)}, "users share its session"),
    ({"kind": "signed", "issuer": "https://a.example"}, {}, "takes no issuer"),
    ({"kind": "signed", "audience": "a\nb"}, {}, "its audience is invalid"),
    ({"kind": "pass_through", "audience": "shop"}, {}, "takes no audience"),
    ({"kind": "pass_through"}, {"mcp": SERVER}, "never passed to MCP servers"),
    ({"kind": "signed"}, {"mcp": McpServer(command=("node", "a.js"))}, "a program gets no identity"),
    ({"kind": "client_credentials", **OAUTH, "client_secret": ""}, {}, "needs a client secret"),
    ({"kind": "client_credentials", **OAUTH, "client_id": ""}, {}, "needs a client id"),
    ({"kind": "client_credentials", **OAUTH, "issuer": ""}, {}, "needs an authorization server"),
    ({"kind": "client_credentials", **OAUTH, "issuer": "login"}, {}, "its issuer is not an HTTP URL"),
    ({"kind": "client_credentials", **OAUTH, "client_secret": "two words"}, {}, "not the name of a secret"),
    ({"kind": "client_credentials", **OAUTH, "actor": True}, {}, "takes no actor"),
    ({"kind": "client_credentials", **OAUTH, "scopes": ("two words",)}, {}, "one of its scopes is invalid"),
    ({"kind": "client_credentials", **OAUTH}, {"headers": {"authorization": "{{secret:a}}"}}, "two tokens"),
    ({"kind": "token_exchange", **OAUTH}, {}, "does not say for whom"),
    ({"kind": "token_exchange", **OAUTH, "audience": "shop"}, {"mcp": McpServer(url=SERVER.url, shared=True)},
     "users share its session"),
    ({"kind": "signed"}, {"headers": {"Holdfast-Identity": "me"}}, "cannot set the header"),
]  # fmt: skip


@pytest.mark.parametrize(("identity", "backend", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_settings_that_do_not_go_together_are_refused(
    identity: dict[str, Any], backend: dict[str, Any], why: str
) -> None:
    settings = SourceSettings(backend=Backend(identity=BackendIdentity(**identity), **backend))

    with pytest.raises(InvalidInput, match=why):
        check_settings("shop", settings)
