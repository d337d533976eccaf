"""Whether the server does what its document says: what the document allows is not refused."""

import asyncio
import base64
import json
import os
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import jsonschema_rs
import msgspec.inspect
import pytest

from holdfast.core.settings import AgentSettings
from holdfast.engine import Engine
from holdfast.server.app import OPERATIONS
from holdfast.server.openapi import document
from holdfast.server.operations import ApiOperation
from holdfast.server.routes import commands
from tests.server.allowed_requests import Exchange, exchanges, refusals, undocumented
from tests.server.conftest import make_key, running
from tests.server.floods import app_of
from tests.server.wire import Reply, Site

ROOT = Path(__file__).parents[2]
SCHEMATHESIS = ROOT / ".venv-soak" / "bin" / "schemathesis"
DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(OPERATIONS, root_path="")))
SCOPES = ("read", "write", "admin", "operator")
REPORT = "report.ndjson"
# Lines of JSON are not generated; the document takes no parameters, and is read before all else.
LEFT_OUT = ("import_memories", "openapi")

REST: dict[str, Any] = {
    "description": "",
    "parameters": {},
    "kind": "rest",
    "endpoint": "http://a.example",
    "method": "GET",
}

# (method, path, body): what both the server and the document refuse.
REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/api/sources", {"name": "a", "url": "http://a.b", "identity": {"kind": "signed", "client_id": "a"}}),
    ("POST", "/api/sources", {"name": "a", "url": "http://a.b", "identity": {"kind": "client_credentials"}}),
    ("POST", "/api/topics", {"name": ""}),
    ("POST", "/api/topics", {"name": "a", "partitions": 0}),
    ("POST", "/api/tenants", {"name": "Not A Name"}),
    ("POST", "/api/keys", {"principal": "ann", "scopes": []}),
    ("POST", "/api/keys", {"principal": "ann", "label": "two\nlines"}),
    ("POST", "/api/keys", {"principal": "ann", "agent": "support", "scopes": ["admin"]}),
    ("POST", "/api/memories", {"memories": [{"content": "\u00a0\f"}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "at": "yesterday"}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "at": "0001-12-31T00:00:00Z"}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "at": "9999-01-01T00:00:00Z"}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "ttl": 5e-324}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "seq": 1}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "conversation": "a", "seq": 2**63}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea", "conversation": "a", "seq": -(2**63) - 1}]}),
    ("POST", "/api/memories", {"memories": [{"content": "tea"}], "owner": {"scope": "session"}}),
    ("POST", "/api/memories", {"memories": [{"content": "tea"}], "owner": {"scope": "organization", "name": "acme"}}),
    ("POST", "/api/memories/context", {"query": "tea", "limits": {"family": 1}}),
    ("POST", "/api/memories/search", {"query": "tea", "since": "yesterday"}),
    ("POST", "/api/memories/search", {"query": "tea", "as_of": "9999-01-01T00:00:00Z"}),
    ("POST", "/api/memories/ID/supersede", {"content": " "}),
    ("POST", "/api/memories/ID/supersede", {"content": "coffee", "at": "9999-01-01T00:00:00Z"}),
    ("POST", "/api/sessions/end", {"session_id": ""}),
    ("POST", "/api/skills/import", {"files": {}}),
    ("POST", "/api/skills/import", {"files": {"SKILL.md": {"content": "?"}}}),
    ("PUT", "/api/skills/a", {"instructions": "", "label": ""}),
    ("PUT", "/api/agents/a/skills/b", {"config": {"colour": "red"}}),
    ("PUT", "/api/agents/a/skills/b", {"priority": -(2**31)}),
    ("PUT", "/api/agents/a", {"instructions": "", "limits": {"steps": 0}}),
    ("PUT", "/api/agents/a", {"instructions": "", "limits": {"steps": 10**400}}),
    ("PUT", "/api/agents/a", {"instructions": "", "limits": {"tokens": 10**400}}),
    ("PUT", "/api/secrets/a", {"value": ""}),
    ("PUT", "/api/secrets/a", {"value": "x", "hosts": ["https://a.example"]}),
    ("PUT", "/api/tools/a", {**REST, "method": "FETCH"}),
    ("PUT", "/api/tools/a", {**REST, "permissions": {"everybody": "read"}}),
    ("POST", "/api/sources", {"name": "a"}),
    ("POST", "/api/sources", {"name": "a b", "document": "{}"}),
    ("POST", "/api/sources", {"name": "a", "url": "nowhere"}),
    ("POST", "/api/sources", {"name": "a", "document": "{}", "timeout": 1e300}),
    ("POST", "/api/sources", {"name": "a", "mcp": {}}),
    ("POST", "/api/sources", {"name": "a", "mcp": {}, "url": "file:server"}),
    ("POST", "/api/sources", {"name": "a", "mcp": {"env": {"A": "b"}}, "url": "https://a.example"}),
    ("POST", "/api/sources", {"name": "a", "mcp": {"command": ["a"], "env": {"ld_preload": "b"}}}),
    ("POST", "/api/sources", {"name": "a", "mcp": {"command": ["a"]}, "headers": {"X-A": "b"}}),
    ("POST", "/api/sources", {"name": "a", "mcp": {"command": ["a"]}, "url": "https://a.example"}),
    ("PUT", "/api/notes?agent_id=a", {"operation": "append"}),
    ("PUT", "/api/notes?agent_id=a", {"operation": "read", "content": "x"}),
    ("PUT", "/api/notes?agent_id=a", {"operation": "delete_section_by_header", "section_header": ""}),
    ("PUT", "/api/notes?agent_id=a", {"operation": "append", "content": "x", "version": 2**31}),
    ("POST", "/api/notes/restore?agent_id=a", {"revision": 2**31}),
    ("POST", "/api/notes/restore?agent_id=a", {"revision": 1, "version": 2**31}),
    ("POST", "/api/commands", {"skill": ""}),
    ("POST", "/api/commands", {"skill": "a", "reply_to": "a.b"}),
    ("POST", "/api/commands", {"skill": "a", "max_attempts": 0}),
    ("POST", "/api/commands", {"skill": "a", "headers": {"": "x"}}),
    ("POST", "/api/groups/a/reset", {"topic": "known", "offset": 1, "end": True}),
    ("POST", "/api/groups/a/reset", {"topic": "known", "at": "0001-01-01T00:00:00+12:00"}),
    ("PUT", "/api/tools/a", {**REST, "kind": "function", "reference": "no function"}),
    ("POST", "/api/conversations", {"document": True, "session_id": "s"}),
    ("POST", "/api/chat", {"message": " "}),
    ("PATCH", "/api/memories/ID", {"version": 1}),
    ("PATCH", "/api/memories/ID", {"content": " "}),
]  # fmt: skip

# (path, parameter, value), likewise.
REFUSED_IN_QUERIES: list[tuple[str, str, str | int]] = [
    ("/api/conversations", "cursor", "no-cursor"),
    ("/api/conversations/search", "text", ""),
    ("/api/memories", "cursor", ""),
    ("/api/runs", "cursor", "no-cursor"),
    ("/api/registry/history", "before", "first"),
    ("/api/skills", "query", " "),
    ("/api/tools", "query", ""),
    ("/api/commands", "before", ""),
    ("/api/sessions/active", "agent_id", ""),
    ("/api/ids?kind=run", "prefix", ""),
    ("/api/ids?kind=run", "prefix", "-"),
    ("/api/ids?kind=run", "prefix", "0x"),
    ("/api/ids?kind=run", "prefix", "0" * 33),
    ("/api/nodes/NODE/revisions", "since", 2**31),
    ("/api/notes/revisions?agent_id=a", "before", 2**31),
    ("/api/topics/known/records", "at", "9999-12-31T23:59:59-12:00"),
]

# (path, parameter, value): the utmost that both take.
TAKEN_IN_QUERIES: list[tuple[str, str, str | int]] = [
    ("/api/ids?kind=run", "prefix", "-0A-f"),
    ("/api/ids?kind=run", "prefix", "-".join("0" * 32)),
    ("/api/nodes/NODE/revisions", "since", 0),
    ("/api/nodes/NODE/revisions", "since", 2**31 - 1),
    ("/api/notes/revisions?agent_id=a", "before", 2**31 - 1),
    ("/api/topics/known/records", "at", "0002-01-01T00:00:00+12:00"),
    ("/api/topics/known/records", "at", "9998-12-31T23:59:59-12:00"),
]

# (method, path, body): what the document allows, and cannot but allow.
BEYOND: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/api/agents/{name}", {"instructions": "", "limits": {"steps": AgentSettings().max_steps + 1}}),
    ("POST", "/api/sources", {"name": "a", "document": "|?"}),
    ("POST", "/api/sources", {"name": "a", "document": "{"}),
]


def operation_at(method: str, path: str) -> dict[str, Any]:
    """What the document says of a request."""
    wanted = path.partition("?")[0].split("/")
    for known, methods in DOCUMENT["paths"].items():
        parts = known.split("/")
        same = len(parts) == len(wanted) and all(
            part == given or part.startswith("{") for part, given in zip(parts, wanted, strict=True)
        )
        if same and method.lower() in methods:
            return methods[method.lower()]
    raise AssertionError(f"{method} {path} is not described")


def allows(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value is one that the document allows."""
    return jsonschema_rs.validator_for(
        {**schema, "components": DOCUMENT["components"]}, validate_formats=True
    ).is_valid(value)


def parameter_schema(path: str, name: str) -> dict[str, Any]:
    (parameter,) = (each for each in operation_at("GET", path)["parameters"] if each["name"] == name)
    return parameter["schema"]


def query(path: str, name: str, value: str | int) -> str:
    """The path with one more parameter in its query."""
    return f"{path}{'&' if '?' in path else '?'}{name}={quote(str(value))}"


def body_schema(method: str, path: str) -> dict[str, Any]:
    return operation_at(method, path)["requestBody"]["content"]["application/json"]["schema"]


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
def test_the_document_refuses_bodies_that_the_server_refuses(method: str, path: str, body: dict[str, Any]) -> None:
    assert not allows(body_schema(method, path), body)


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(("path", "name", "value"), REFUSED_IN_QUERIES)
def test_the_document_refuses_queries_that_the_server_refuses(path: str, name: str, value: str | int) -> None:
    assert not allows(parameter_schema(path, name), value)


@pytest.mark.req("ENG-07")
async def test_the_server_refuses_what_the_document_refuses(site: Site) -> None:
    key = await make_key(site.engine, scopes=SCOPES)
    told = await site.ask("POST", "/api/memories", key=key, json={"memories": [{"content": "tea"}]})
    id = told.json()["memories"][0]["id"]
    node = await _node(site, key)
    await site.ask("POST", "/api/topics", key=key, json={"name": "known"})
    answered: dict[str, int] = {}

    async with site.connect() as wire:
        for method, path, body in REFUSED:
            answered[f"{method} {path} {body}"] = (
                await wire.ask(method, path.replace("ID", id), key=key, json=body)
            ).status
        for path, name, value in REFUSED_IN_QUERIES:
            asked = query(path, name, value)
            answered[asked] = (await wire.ask("GET", asked.replace("NODE", node), key=key)).status

    assert {request: status for request, status in answered.items() if status != HTTPStatus.BAD_REQUEST} == {}


@pytest.mark.req("ENG-07")
async def test_the_server_and_the_document_take_the_utmost_values(site: Site) -> None:
    key = await make_key(site.engine, scopes=SCOPES)
    node = await _node(site, key)
    await site.ask("POST", "/api/topics", key=key, json={"name": "known"})
    answered: dict[str, int] = {}

    async with site.connect() as wire:
        for path, name, value in TAKEN_IN_QUERIES:
            asked = query(path, name, value)
            answered[asked] = (await wire.ask("GET", asked.replace("NODE", node), key=key)).status

    assert {request: status for request, status in answered.items() if status != HTTPStatus.OK} == {}
    assert [each for each in TAKEN_IN_QUERIES if not allows(parameter_schema(*each[:2]), each[2])] == []


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(("method", "path", "body"), BEYOND)
async def test_what_the_document_cannot_say_is_no_refusal(
    site: Site, method: str, path: str, body: dict[str, Any]
) -> None:
    key = await make_key(site.engine, scopes=SCOPES)

    refused = await site.ask(method, path.format(name="a"), key=key, json=body)

    assert allows(body_schema(method, path), body)
    assert refused.status == HTTPStatus.BAD_REQUEST
    assert refusals([_seen(f"{method} {path}", refused)]) == []


async def _node(site: Site, key: str) -> str:
    """The id of a new node."""
    talk = (await site.ask("POST", "/api/conversations", key=key, json={})).json()
    node = await site.ask("POST", f"/api/conversations/{talk['id']}/nodes", key=key, json={"content": "a"})
    return node.json()["id"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_what_is_taken_is_described_to_the_letter(operation: ApiOperation) -> None:
    for type in (operation.body, *(parameter.type for parameter in operation.parameters)):
        if type not in (None, bytes):
            assert list(vague(msgspec.inspect.type_info(type))) == []


def vague(type: Any, *, stated: dict[str, Any] | None = None, seen: frozenset[Any] = frozenset()) -> list[str]:
    """What in a type is checked and not described, unless it is `stated`: times, and the names in an object."""
    match type:
        case msgspec.inspect.Metadata():
            return vague(type.type, stated=cast(dict[str, Any], type.extra_json_schema or {}), seen=seen)
        case msgspec.inspect.DateTimeType(tz=tz):
            return [] if tz or (stated or {}).get("format") == "date-time" else ["a time without a format"]
        case msgspec.inspect.DictType(key_type=msgspec.inspect.LiteralType()):
            return [] if "propertyNames" in (stated or {}) else ["an object whose names are not listed"]
        case msgspec.inspect.DictType(value_type=value):
            return vague(value, seen=seen)
        case msgspec.inspect.UnionType(types=types):
            return [each for one in types for each in vague(one, seen=seen)]
        case msgspec.inspect.ListType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item):
            return vague(item, seen=seen)
        case msgspec.inspect.StructType(cls=cls, fields=fields) | msgspec.inspect.DataclassType(cls=cls, fields=fields):
            if cls in seen:
                return []
            return [f"{one.name}: {each}" for one in fields for each in vague(one.type, seen=seen | {cls})]
        case _:
            return []


@pytest.mark.req("ENG-07")
async def test_a_whole_number_may_be_written_with_a_point(site: Site, key: str) -> None:
    node = await _node(site, key)

    edited = await _edit(site, key, node, b'{"content": "b", "version": 1.0, "payload": {"half": 0.5}}')
    halved = await _edit(site, key, node, b'{"content": "c", "version": 2.5}')
    huge = await _edit(site, key, node, b'{"content": "c", "version": 1e300}')

    assert (edited.status, halved.status, huge.status) == (200, 400, 400), edited
    assert edited.json()["version"] == 2
    assert edited.json()["payload"] == {"half": 0.5}


async def _edit(site: Site, key: str, id: str, body: bytes) -> Reply:
    return await site.ask("PATCH", f"/api/nodes/{id}", key=key, body=body, headers={"Content-Type": "application/json"})


@pytest.mark.req("ENG-07")
async def test_every_kind_of_content_is_documented(site: Site) -> None:
    key = await make_key(site.engine, scopes=SCOPES)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found: list[Exchange] = []

    async with site.connect() as wire:
        for operation in OPERATIONS:
            if operation.method == "GET" and not any(each.place == "path" for each in operation.parameters):
                reply = await wire.ask("GET", operation.path, key=key)
                found.append(_seen(f"GET {operation.path}", reply))
        found.append(_seen("POST /login", await wire.ask("POST", "/login", body=b"link=hf_x", headers=form)))
        found.append(_seen("POST /login", await wire.ask("POST", "/login", body=b"link=%ff", headers=form)))
        found.append(_seen("POST /logout", await wire.ask("POST", "/logout")))

    assert {each.status for each in found} >= {200, 303, 400, 401}
    assert undocumented(found, DOCUMENT) == []


def _seen(operation: str, reply: Reply) -> Exchange:
    kind = reply.headers.get("content-type", "").partition(";")[0]
    return Exchange(operation, "", reply.status, kind, reply.body)


def test_the_output_of_a_call_may_be_of_any_kind() -> None:
    output = Exchange("GET /api/executions/{id}/output", "", 200, "image/png", b"\x89PNG")

    assert undocumented([output], DOCUMENT) == []


def test_a_refusal_an_error_and_a_kind_that_is_not_described_are_found_in_a_report() -> None:
    report = [
        "{}",
        _line("POST /api/topics", 400, "'' is not a valid name for a topic"),
        _line("GET /api/topics", 500, "internal error"),
        _line("GET /api/topics", 200, "", kind="text/plain"),
        _line("POST /api/runs/{id}/retry", 400, "the run 7 cannot be retried"),
    ]

    found = exchanges(report)

    assert [(each.operation, each.status) for each in refusals(found)] == [
        ("POST /api/topics", 400),
        ("GET /api/topics", 500),
    ]
    assert [each.content_type for each in undocumented(found, DOCUMENT)] == ["text/plain"]


def _line(operation: str, status: int, what: str, kind: str = "application/problem+json") -> str:
    content = base64.b64encode(json.dumps({"what": what}).encode()).decode()
    response = {"status_code": status, "headers": {"content-type": [kind]}, "content": {"$base64": content}}
    recorder: dict[str, Any] = {
        "label": operation,
        "cases": {"a": {"value": {}}},
        "interactions": {"a": {"response": response}},
    }
    return json.dumps({"ScenarioFinished": {"recorder": recorder}})


@pytest.mark.req("ENG-07")
@pytest.mark.soak
async def test_no_request_that_the_document_allows_is_refused(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not SCHEMATHESIS.exists():
        message = "THE DOCUMENT IS NOT TESTED: schemathesis is missing; `make soak` installs it"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    monkeypatch.setattr(commands, "SHARE", 0.01)  # nobody works on commands here: who waits for one waits in vain
    key = await make_key(engine, scopes=SCOPES)
    own = engine.tenant(await engine.tenants.id_of("default"))
    app = app_of(seconds=0)  # whoever names no agent has its answer at once
    async with own.serving(app), running(engine, engine.config, OPERATIONS, app=app) as site:
        described = (await site.ask("GET", "/api/openapi.json")).json()
        (tmp_path / "schemathesis.toml").write_text(await _known_rows(site, key))
        said = await _try_all(site, key, tmp_path)

    found = exchanges((tmp_path / REPORT).read_text().splitlines())
    operations = {
        f"{method.upper()} {path}"
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if operation["operationId"] not in LEFT_OUT
    }
    assert operations - {each.operation for each in found} == set(), said
    assert any(each.status < HTTPStatus.BAD_REQUEST for each in found)
    loose = sorted({str(each) for each in refusals(found)})
    assert not loose, f"the document allows {len(loose)} requests that are refused:\n" + "\n".join(loose)
    strange = sorted({f"{each} as {each.content_type}" for each in undocumented(found, described)})
    assert not strange, f"{len(strange)} answers are not described:\n" + "\n".join(strange)


async def _try_all(site: Site, key: str, folder: Path) -> str:
    """Have every operation asked for what the document allows; what schemathesis says at the end."""
    left_out = [word for name in LEFT_OUT for word in ("--exclude-operation-id", name)]
    process = await asyncio.create_subprocess_exec(
        SCHEMATHESIS, "--config-file", str(folder / "schemathesis.toml"), "run",
        f"http://127.0.0.1:{site.port}/api/openapi.json", "--header", f"Authorization: Bearer {key}",
        "--mode", "positive", "--phases", "coverage,fuzzing", "--max-examples", "15", "--seed", "1", "--no-shrink",
        "--checks", "not_a_server_error", *left_out, "--continue-on-failure", "--no-color", "--max-redirects", "0",
        "--generation-database", "none", "--report", "ndjson", "--report-ndjson-path", REPORT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=folder,
    )  # fmt: skip
    said, _ = await process.communicate()
    return said.decode()[-4000:]


async def _known_rows(site: Site, key: str) -> str:
    """Settings by which requests meet rows that are there: what is not found says nothing about a body."""

    async def made(method: str, path: str, body: dict[str, Any]) -> Any:
        reply = await site.ask(method, path, key=key, json=body)
        assert reply.status < HTTPStatus.BAD_REQUEST, reply
        return reply.json()

    talk = (await made("POST", "/api/conversations", {"session_id": "kept"}))["id"]
    ids = {
        "conversations": talk,
        "nodes": (await made("POST", f"/api/conversations/{talk}/nodes", {"content": "hello"}))["id"],
        "memories": (await made("POST", "/api/memories", {"memories": [{"content": "tea"}]}))["memories"][0]["id"],
    }
    await made("POST", "/api/topics", {"name": "kept"})
    await made("PUT", "/api/skills/kept", {"instructions": "Be kind.", "description": "How to be kind"})
    rest = {"kind": "rest", "endpoint": "http://127.0.0.1:9/", "method": "GET"}
    await made("PUT", "/api/tools/kept", {"description": "", "parameters": {"type": "object"}, **rest})
    lines = ["continue-on-failure = true"]
    for subject, id in ids.items():
        lines += _parameter(rf"^/api/{subject}/\\{{id\\}}", "id", id, 'exclude-method = ["DELETE"]')
    for subject in ("topics", "skills", "tools"):
        lines += _parameter(rf"^/api/{subject}/\\{{name\\}}/", "name", "kept")
    return "\n".join(lines)


def _parameter(path: str, name: str, value: str, *more: str) -> list[str]:
    return ["[[operations]]", f'include-path-regex = "{path}"', *more, f'parameters = {{ "path.{name}" = "{value}" }}']


async def test_an_importance_too_small_for_its_column_counts_as_none(site: Site, key: str) -> None:
    told = await site.ask(
        "POST", "/api/memories", key=key, json={"memories": [{"content": "tea", "importance": 5e-324}]}
    )
    id = told.json()["memories"][0]["id"]
    edited = await site.ask("PATCH", f"/api/memories/{id}", key=key, json={"importance": 1e-50})

    assert (told.status, edited.status) == (201, 200)
    assert told.json()["memories"][0]["importance"] == edited.json()["importance"] == 0
