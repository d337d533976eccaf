"""Transports: HTTP, MCP, JSON-RPC and sockets; every answer has the status that HTTP would have for it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from holdfast.core.wires import HTTP_STATUS
from holdfast.mcp.protocol import METHOD_NOT_FOUND
from tests.access.matrix.objects import Fields
from tests.access.matrix.rows import BY_NAME, Row, fill
from tests.access.matrix.world import Person, World
from tests.server import mcp_wire
from tests.server.socket_client import JSON, address
from tests.server.wire import PATIENCE, Reply, Wire


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    text: str
    headers: Mapping[str, str]
    refusal: str = ""  # where that is a part of the text

    @property
    def is_ok(self) -> bool:
        """Whether it was allowed; a sign-in redirects."""
        return 200 <= self.status < 400


class Transports:
    """Asks for one test, on one connection."""

    def __init__(self, world: World, wire: Wire) -> None:
        self._world = world
        self._wire = wire

    async def ask(self, row: Row, person: Person, fields: Fields) -> Answer:
        """The answer to a row, from a caller about an object."""
        match row.way:
            case "http":
                return _plain(await self._http(row, person, fields))
            case "tool":
                params = {"name": row.name, "arguments": fill(row.body or {}, fields)}
                return _of_mcp(await self._modern("tools/call", params, person))
            case "resource":
                named = {**fields, "session_id": fields["session"]}
                uri = fill(row.name, {name: quote(value) for name, value in named.items()})
                return _of_mcp(await self._modern("resources/read", {"uri": uri}, person))
            case "mcp":
                return _of_mcp(await self._modern(row.name, fill(row.body or {}, fields), person))
            case "session":
                message = mcp_wire.legacy(row.name, fill(row.body or {}, fields))
                headers = mcp_wire.of_session(fields["session"]) | dict(person.headers)
                return _of_mcp(await self._send("POST", "/mcp", person, headers, json=message))
            case "rpc":
                body = {"jsonrpc": "2.0", "id": 1, "method": fill(row.name, fields)}
                body["params"] = fill(row.body or {}, fields)
                return _of_rpc(await self._send("POST", "/rpc", person, {}, json=body))
            case "stream":
                return await self._stream(row, person, fields)
            case "socket":
                return await self._socket(row, person, fields)

    async def _http(self, row: Row, person: Person, fields: Fields) -> Reply:
        operation = BY_NAME.get(row.name)
        if operation is None:
            method, path = row.name.split(" ")
            kind = "application/json"
        else:
            method, path, kind = operation.method, operation.path, operation.body_format
        quoted = {name: quote(value, safe="") for name, value in fields.items()}
        query = urlencode(fill(row.query, fields))
        path = fill(row.path or path, quoted) + (f"?{query}" if query else "")
        body = fill(row.body, fields)
        headers = {name: fill(value, fields) for name, value in row.headers.items()}
        if body is None:
            return await self._send(method, path, person, headers)
        if kind == "application/json":
            return await self._send(method, path, person, headers, json=body)
        sent = body if isinstance(body, str) else urlencode(body)
        return await self._send(method, path, person, {**headers, "Content-Type": kind}, body=sent.encode())

    async def _send(self, method: str, path: str, person: Person, headers: Mapping[str, str], **content: Any) -> Reply:
        return await self._wire.ask(method, path, key=person.key, headers={**headers, **person.headers}, **content)

    async def _modern(self, method: str, params: Mapping[str, Any], person: Person) -> Reply:
        body = mcp_wire.modern(method, params)
        return await self._send("POST", "/mcp", person, mcp_wire.mirror(body), json=body)

    async def _stream(self, row: Row, person: Person, fields: Fields) -> Answer:
        """The first part of a stream, which is left then; what is refused is no stream."""
        method, path = row.name.split(" ") if " " in row.name else ("POST", "/mcp")
        body = None if " " in row.name else mcp_wire.modern(row.name, fill(row.body or {}, fields))
        headers = {name: fill(value, fields) for name, value in row.headers.items()} | dict(person.headers)
        if body is not None:
            headers |= mcp_wire.mirror(body)
        async with mcp_wire.opened(self._world.site, method, path, headers=headers, json=body, key=person.key) as wire:
            head = await wire.reply_without_body()
            if head.headers.get("content-type", "").startswith("text/event-stream"):
                async with asyncio.timeout(PATIENCE):
                    first = await anext(wire.chunks())
                return Answer(head.status, first.decode(), head.headers)
            return _plain(await wire.whole(head))

    async def _socket(self, row: Row, person: Person, fields: Fields) -> Answer:
        """All that a socket says to one frame, up to the answer to a ping behind it."""
        headers = dict(person.headers) | ({} if person.key is None else {"Authorization": f"Bearer {person.key}"})
        session = fill(row.query.get("session_id", "{own.session}"), fields)
        url = address(self._world.site, fields["agent"], session_id=session)
        try:
            async with connect(url, subprotocols=JSON, additional_headers=headers, compression=None) as socket:
                for frame in ({"type": row.name, **fill(row.body or {}, fields)}, {"type": "ping"}):
                    await socket.send(json.dumps(frame))
                said: list[dict[str, Any]] = []
                async with asyncio.timeout(PATIENCE):
                    while not said or said[-1]["kind"] != "pong":
                        said.append(json.loads(await socket.recv()))
        except InvalidStatus as error:
            reply = error.response
            told = {name.lower(): value for name, value in reply.headers.raw_items()}
            return Answer(reply.status_code, (reply.body or b"").decode(), told)
        refused = next((frame for frame in said if frame["kind"] == "refused"), None)
        status = 200 if refused is None else HTTP_STATUS[refused["code"]]
        return Answer(status, json.dumps(said), {}, json.dumps(refused))


def _plain(reply: Reply) -> Answer:
    return Answer(reply.status, reply.body.decode(errors="replace"), reply.headers)


def _of_mcp(reply: Reply) -> Answer:
    """What MCP says, by the status of HTTP: an error has a code of ours or of the protocol, a tool's has words."""
    text = reply.body.decode()
    said = json.loads(text.rpartition("data: ")[2] or "{}")
    if "jsonrpc" not in said or reply.status not in (200, 400):
        return _plain(reply)
    error = said.get("error")
    if error is not None:
        about: dict[str, Any] = error.get("data") or {}
        unknown = "uri" in about or error["code"] == METHOD_NOT_FOUND or "there is no" in error["message"]
        status = HTTP_STATUS.get(about.get("code", ""), 404 if unknown else 400)
    elif said["result"].get("isError"):
        words = said["result"]["content"][0]["text"]
        status = (
            404 if "there is no" in words or "has no skill" in words else 403 if "needs the scope" in words else 400
        )
    else:
        status = 200
    return Answer(status, text, reply.headers)


def _of_rpc(reply: Reply) -> Answer:
    if reply.status != 200:
        return _plain(reply)
    error = reply.json().get("error")
    return Answer(200 if error is None else error["data"]["statusCode"], reply.body.decode(), reply.headers)
