"""Ways to call a REST back end: bare clients, ours, and LangChain's tools; each call ends with the answer as values."""

import importlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal
from uuid import uuid4

from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.executor import Executor
from holdfast.execution.rest import HttpRunner
from holdfast.skills.request import AuthScheme, Backend, BodyField, RequestBody, RequestParameter, RequestTemplate
from holdfast.skills.run import Run
from holdfast.skills.tool import Tool

Method = Literal["GET", "POST"]
METHODS: tuple[Method, ...] = ("GET", "POST")
CUSTOMER, FIELDS, NOTE = 42, "name,orders", "called twice today"
SECRET = "s3cret-0123456789"  # of nobody

BARE = "bare aiohttp"
OURS = "Holdfast, the runner"
OURS_SECRET = "Holdfast, the runner, with a secret"
OURS_EXECUTOR = "Holdfast, the executor"
HTTPX = "bare httpx"
LANGCHAIN = "LangChain, its requests tools"

# Gets a customer, or posts a note about one, and gives what the back end says.
Call = Callable[[Method], Awaitable[Any]]
Opens = Callable[[str], AbstractAsyncContextManager[Call]]
RUN = Run(None, "support", None, None, uuid4(), "call-1", "key-1")


@dataclass(frozen=True, slots=True)
class Shown:
    """A secret for everybody."""

    value: str = SECRET

    def allows(self, host: str) -> bool:
        """Whether a host may see it."""
        return bool(host)


async def secrets(names: Collection[str]) -> Mapping[str, Shown]:
    """The secret, by any name."""
    return {name: Shown() for name in names}


def tools(url: str, *, secret: bool = False) -> dict[Method, Tool]:
    """Our tools for both calls, as an import of the back end's document makes them."""
    place = RequestParameter("id", "id", "path", "simple")
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "fields": {"type": "string"}}}
    security = ((AuthScheme("main", "bearer"),),) if secret else ()
    get, post = f"{url}/customers/{{id}}", f"{url}/customers/{{id}}/notes"
    fields = RequestParameter("fields", "fields", "query", "form", explode=True)
    body = RequestBody("application/json", fields=(BodyField("note", "note"),))
    requests: dict[Method, RequestTemplate] = {
        "GET": RequestTemplate("GET", get, (place, fields), security=security),
        "POST": RequestTemplate("POST", post, (place,), body, security=security),
    }
    backend = Backend(auth={"main": "key"})
    return {
        method: Tool(method, "", schema, kind="rest", request=request, backend=backend, idempotent=method == "GET")
        for method, request in requests.items()
    }


ARGUMENTS: Mapping[Method, Mapping[str, Any]] = {
    "GET": {"id": CUSTOMER, "fields": FIELDS},
    "POST": {"id": CUSTOMER, "note": NOTE},
}


@asynccontextmanager
async def runner(url: str, *, secret: bool = False) -> AsyncGenerator[Call]:
    """Our runner."""
    made = tools(url, secret=secret)
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        rest = HttpRunner(egress, secrets)

        async def call(method: Method) -> Any:
            return (await rest.run(made[method], ARGUMENTS[method], RUN, timeout=30)).value

        yield call


@asynccontextmanager
async def executor(url: str) -> AsyncGenerator[Call]:
    """Our executor with our runner: limits of time and output, and the text that a model reads."""
    made = tools(url)
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        executor = Executor({"rest": HttpRunner(egress, secrets)})

        async def call(method: Method) -> Any:
            outcome = await executor.run(made[method], ARGUMENTS[method], RUN, timeout=30, max_output_bytes=32_000)
            return outcome.result

        yield call


@asynccontextmanager
async def bare_aiohttp(url: str) -> AsyncGenerator[Call]:
    """aiohttp as its documentation has it, one session for all calls."""
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def call(method: Method) -> Any:
            if method == "GET":
                asking = session.get(f"{url}/customers/{CUSTOMER}", params={"fields": FIELDS})
            else:
                asking = session.post(f"{url}/customers/{CUSTOMER}/notes", json={"note": NOTE})
            async with asking as answer:
                return await answer.json()

        yield call


@asynccontextmanager
async def bare_httpx(url: str) -> AsyncGenerator[Call]:
    """httpx, one client for all calls."""
    httpx: Any = importlib.import_module("httpx")
    async with httpx.AsyncClient() as client:

        async def call(method: Method) -> Any:
            if method == "GET":
                return (await client.get(f"{url}/customers/{CUSTOMER}", params={"fields": FIELDS})).json()
            return (await client.post(f"{url}/customers/{CUSTOMER}/notes", json={"note": NOTE})).json()

        yield call


@asynccontextmanager
async def langchain(url: str) -> AsyncGenerator[Call]:
    """LangChain's tools for requests, with the input that a model writes for them."""
    tool: Any = importlib.import_module("langchain_community.tools.requests.tool")
    wrapper: Any = importlib.import_module("langchain_community.utilities.requests").TextRequestsWrapper()
    get = tool.RequestsGetTool(requests_wrapper=wrapper, allow_dangerous_requests=True)
    post = tool.RequestsPostTool(requests_wrapper=wrapper, allow_dangerous_requests=True)
    asked = json.dumps({"url": f"{url}/customers/{CUSTOMER}/notes", "data": {"note": NOTE}})

    async def call(method: Method) -> Any:
        if method == "GET":
            return json.loads(await get.ainvoke(f"{url}/customers/{CUSTOMER}?fields={FIELDS}"))
        return json.loads(await post.ainvoke(asked))

    yield call


WAYS: Mapping[str, Opens] = {
    BARE: bare_aiohttp,
    OURS: runner,
    OURS_SECRET: partial(runner, secret=True),
    OURS_EXECUTOR: executor,
    HTTPX: bare_httpx,
    LANGCHAIN: langchain,
}
_NEEDS = {HTTPX: "httpx", LANGCHAIN: "langchain_community"}


def is_installed(way: str) -> bool:
    """Whether what a way needs is here."""
    return way not in _NEEDS or find_spec(_NEEDS[way]) is not None
