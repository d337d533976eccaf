"""The ASGI application: all routes, behind the guards."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.app import App
from holdfast.core.errors import NotFound
from holdfast.engine import Engine
from holdfast.gateway.gateways import Gateways
from holdfast.server.api_resource import ApiResource
from holdfast.server.authentication import Authentication
from holdfast.server.challenges import Challenges
from holdfast.server.files import SCREENS, Console, Files
from holdfast.server.host_origin import HostOriginPolicy
from holdfast.server.mcp.endpoint import McpEndpoint
from holdfast.server.mcp.legacy.running_requests import RunningRequests
from holdfast.server.mcp.legacy.sse import SseEndpoint
from holdfast.server.middleware import Middleware
from holdfast.server.openapi import document
from holdfast.server.operations import ApiCall, ApiOperation, ApiOperations
from holdfast.server.port import ServerAddress
from holdfast.server.request_limits import SLOT, RequestLimits, RequestSlot
from holdfast.server.routes import (
    agents,
    approvals,
    audit,
    browser,
    chat,
    commands,
    connections,
    conversations,
    dead_letters,
    executions,
    graph,
    groups,
    health,
    identity,
    ids,
    ingest_jobs,
    keys,
    knowledge,
    limits,
    memories,
    metrics,
    nodes,
    notes,
    proposals,
    recall,
    research,
    rules,
    runs,
    secrets,
    services,
    sessions,
    skills,
    sources,
    state,
    tenants,
    tools,
    topics,
    transfer,
    turns,
    well_known,
)
from holdfast.server.rpc import RpcEndpoint
from holdfast.server.server_file import instance_of
from holdfast.server.sockets import Sockets

OPERATIONS: tuple[ApiOperation, ...] = (
    *health.operations,
    *tenants.operations,
    *keys.operations,
    *limits.operations,
    *audit.operations,
    *conversations.operations,
    *nodes.operations,
    *state.operations,
    *turns.operations,
    *sessions.operations,
    *chat.operations,
    *rules.operations,
    *runs.operations,
    *approvals.operations,
    *agents.operations,
    *skills.operations,
    *tools.operations,
    *services.operations,
    *executions.operations,
    *ids.operations,
    *notes.operations,
    *sources.operations,
    *proposals.operations,
    *secrets.operations,
    *connections.operations,
    *identity.operations,
    # Fixed paths come before ids: the first path that matches is used.
    *recall.operations,
    *transfer.operations,
    *memories.operations,
    *ingest_jobs.operations,
    *knowledge.operations,
    *research.operations,
    *graph.operations,
    *topics.operations,
    *groups.operations,
    *dead_letters.operations,
    *commands.operations,
    *metrics.operations,
    *browser.operations,
    *well_known.operations,
)


class Anonymous:
    """Serves an application without authentication, within the limits of anonymous requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        slot: RequestSlot = scope[SLOT]
        slot.enter_unknown()
        await self._app(scope, receive, send)


def build_app(
    engine: Engine,
    address: ServerAddress,
    *,
    token: str,
    traffic: RequestLimits | None = None,
    operations: Sequence[ApiOperation] = OPERATIONS,
    app: App | None = None,
) -> ASGIApp:
    """Build the application of a server on `address`. `token` authenticates the operator.

    `app` is the app whose resources and prompts the gateway offers.
    """
    settings = engine.config.server
    allow_local = address.is_loopback and not settings.require_key
    authentication = Authentication(engine.keys, engine.tokens, engine.tenants, token=token, allow_local=allow_local)
    operations = tuple(operation.with_limits(engine.config) for operation in operations)
    operations = (*operations, *_description(operations, settings.root_path))
    resources: dict[str, list[ApiOperation]] = {}
    for operation in operations:
        resources.setdefault(operation.path, []).append(operation)
    instance = instance_of(token)
    gateways = Gateways(engine, app)
    routes = _gateway(engine, gateways, authentication)
    routes += [
        # Only the parameter `path` may contain slashes.
        Route(
            path.replace("{path}", "{path:path}"),
            ApiResource(engine, authentication, found, instance=instance, gateways=gateways),
        )
        for path, found in resources.items()
    ]
    routes.append(Route("/static/{path:path}", Anonymous(Files())))
    routes += _screens(Anonymous(Console(settings.root_path)))
    routes.append(WebSocketRoute("/ws/{agent}", Sockets(engine, authentication)))
    guards = Middleware(
        Router(routes, redirect_slashes=False, default=_not_found),
        host_policy=HostOriginPolicy(address, hosts=settings.allowed_hosts, origins=settings.allowed_origins),
        challenges=Challenges(engine.config),
        traffic=traffic or RequestLimits(engine.config.limits),
        settings=settings,
        operations=operations,
    )
    if not settings.allowed_origins:
        return guards
    # Outside the guards, so that pages can read the errors of the guards too.
    return CORSMiddleware(
        guards,
        allow_origins=settings.allowed_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "mcp-session-id", "www-authenticate"],
    )


def _gateway(engine: Engine, gateways: Gateways, authentication: Authentication) -> list[BaseRoute]:
    """Return the routes of the gateway. They come first, because they get the most requests."""
    routes: list[BaseRoute] = [Route("/rpc", RpcEndpoint(gateways, authentication))]
    if engine.config.gateway.mcp:
        calls = RunningRequests()
        sse = SseEndpoint(gateways, authentication, calls)
        routes = [
            Route("/mcp", McpEndpoint(gateways, authentication, calls)),
            Route("/mcp/sse", sse),
            Route("/mcp/message", sse),
            *routes,
        ]
    return routes


def _screens(console: ASGIApp) -> list[BaseRoute]:
    """Return the routes of the console: the path of each screen, and all paths below it."""
    below = [Route(f"{screen}/{{path:path}}", console) for screen in SCREENS if screen != "/"]
    return [*(Route(screen, console) for screen in SCREENS), *below]


def _description(operations: Sequence[ApiOperation], root_path: str) -> ApiOperations:
    described = ApiOperations("about")

    @cache  # slow to build and rarely requested
    def content() -> dict[str, Any]:
        return document((*operations, *described), root_path=root_path)

    @described.declare("GET", "/api/openapi.json", needs="nobody")
    async def openapi(call: ApiCall) -> dict[str, Any]:
        """Get the OpenAPI document of this API."""
        return content()

    return described


async def _not_found(scope: Scope, receive: Receive, send: Send) -> NoReturn:
    raise NotFound("there is nothing at this address", next="/api/openapi.json lists what there is.")
