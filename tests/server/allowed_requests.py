"""Judges what a server answered to requests that its OpenAPI document allows, from schemathesis' report."""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# What a document cannot say: (operation, what the refusal says, why that is so).
BEYOND_THE_DOCUMENT = (
    # What depends on rows or settings.
    ("DELETE /api/skills/{name}", "needs it", "which skills need it is in their rows"),
    ("DELETE /api/topics/{name}", "cannot be removed", "the engine's own topics stay"),
    ("GET /api/memories/owners", "no list returned it", "a cursor of that form was given by no list"),
    ("GET /api/topics/{name}/records", "has no partition", "which partitions there are is in the topic's row"),
    ("POST /api/groups/{group}/reset", "has no partition", "which partitions there are is in the topic's row"),
    ("POST /api/memories/{id}/supersede", "already superseded|not valid yet", "it depends on the memory's row"),
    ("POST /api/nodes/{id}/move", "cannot be changed", "it depends on the node's tree"),
    ("POST /api/runs/{id}/retry", "cannot be retried", "it depends on the run's state"),
    ("PUT /api/agents/{name}", "unknown model", "which models there are is in the settings"),
    ("PUT /api/agents/{name}", "and the operator allows", "how much an agent may take is in the settings"),
    ("PUT /api/tools/{name}", r"has no runner for the kind \w+", "which kinds run is known to the executor"),
    ("PUT /api/tools/{name}", r"an? \w+ tool requires|reserved for a tool", "left out, it is as in the row"),
    ("PUT /api/tools/{name}", "not registered one by one", "left out, its request is as in the row"),
    (".* /api/sources.*", "sources.folder is not set|execution.commands", "it is in the settings"),
    (".* /api/sources.*", "cannot be fetched.*has no URL", "where the document is from is in the source's row"),
    (".* /api/sources.*", "cannot be fetched|was not called", "the address is another server's"),
    (".* /api/sources.*", "cannot be resolved|closed the connection", "the address is another server's"),
    (".* /api/sources.*", "execution.pass_through|passed to a REST", "it is in the settings, or in the row"),
    (".* /api/sources.*", "two tokens|users share its session|a program gets", "what it goes with is in the row"),
    ("PUT /api/(skills|agents)/.*", "has no argument|does not match the schema of the tool", "the tool's row says so"),
    # What is inside a text: a document, a schema, a folder.
    ("PUT /api/tools/{name}", "JSON Schema of its arguments", "`parameters` is a JSON Schema"),
    (".* /api/sources.*", "the document", "`document` is an OpenAPI document"),
    (".* /api/sources.*", r"this is not YAML|not valid JSON: .*\(line \d+, column \d+\)", "`document` is YAML or JSON"),
    (".* /api/sources.*", "the (header|variable) .* (contains a secret|has an inv)|set the header", "by its name"),
    ("POST /api/skills/import", "SKILL.md|the name|folder|path", "`files` are a skill's folder"),
    ("PUT /api/skills/{name}", "path|file", "`files` are a skill's folder"),
    # What concerns two parameters of a query at once, for which OpenAPI has no words.
    ("GET /api/memories(/export)?", "the owner of the memories|has no name", "`name` goes with `scope`"),
    ("GET /api/conversations/{id}/nodes", "cannot be combined", "`before` and `since` are alternatives"),
    ("GET /api/topics/{name}/records", "given more than once|more than one start", "they are alternatives"),
)  # fmt: skip

REFUSED = (400, 405, 413, 415, 422)
FAILED = 500
NO_CONTENT = (204, 303)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer."""

    operation: str  # such as `GET /api/runs/{id}`
    sent: str
    status: int
    content_type: str  # without its parameters
    content: bytes

    @property
    def said(self) -> str:
        """What a refusal says."""
        try:
            problem = json.loads(self.content)
        except ValueError:
            return repr(self.content[:200])
        return f"{problem.get('what')}: {problem.get('why', '')}" if isinstance(problem, dict) else str(problem)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def __str__(self) -> str:
        return f"{self.operation} {self.sent:.500} → {self.status} {self.said:.300}"


def exchanges(report: Iterable[str]) -> list[Exchange]:
    """What was sent and answered, from the report's lines."""
    found: list[Exchange] = []
    for line in report:
        recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
        for id, interaction in recorder.get("interactions", {}).items():
            response = interaction.get("response")
            if response is not None:
                found.append(_exchange(recorder["label"], recorder["cases"][id]["value"], response))
    return found


def refusals(found: Iterable[Exchange]) -> list[Exchange]:
    """Those that the document allows and the server refuses or breaks at."""
    return [each for each in found if (each.status in REFUSED or each.status >= FAILED) and not _is_beyond(each)]


def undocumented(found: Iterable[Exchange], document: Mapping[str, Any]) -> list[Exchange]:
    """Those whose status, or kind of content, the document does not have."""
    return [each for each in found if not _is_documented(each, document)]


def _exchange(operation: str, case: Mapping[str, Any], response: Mapping[str, Any]) -> Exchange:
    sent = {name: case[name] for name in ("path_parameters", "query", "body") if case.get(name)}
    (kind,) = response["headers"].get("content-type", [""])
    body: Mapping[str, str] = response.get("content") or {}
    content = base64.b64decode(body.get("$base64", ""))
    return Exchange(operation, json.dumps(sent), response["status_code"], kind.partition(";")[0].strip(), content)


def _is_beyond(exchange: Exchange) -> bool:
    return any(
        re.fullmatch(operation.replace("{", r"\{"), exchange.operation) and re.search(said, exchange.said)
        for operation, said, _ in BEYOND_THE_DOCUMENT
    )


def _is_documented(exchange: Exchange, document: Mapping[str, Any]) -> bool:
    method, path = exchange.operation.split(" ", 1)
    described: Mapping[str, Any] = document["paths"].get(path, {}).get(method.lower(), {"responses": {}})
    answer: Mapping[str, Any] | None = described["responses"].get(str(exchange.status))
    if answer is None:
        return False
    if "$ref" in answer:
        answer = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    assert answer is not None
    kinds = answer.get("content", {})
    return exchange.content_type in kinds or "*/*" in kinds or (not kinds and not exchange.content)
