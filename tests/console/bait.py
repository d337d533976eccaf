"""Lays out what hostile people write wherever the console shows something that others wrote."""

from dataclasses import dataclass
from typing import Any

from tests.console.corpus import ARGUMENTS, CORPUS, HEAVY, IMAGE, MARKUP, SIGNS
from tests.console.server import Desk

NAMES = (IMAGE, *SIGNS)


@dataclass(frozen=True, slots=True)
class Bait:
    """Where it lies, by what leads there."""

    talk: str  # a conversation with the whole corpus: said by a person and by an agent, in calls and in results
    session: str
    heavy: str  # one with what is too long or too deep
    heavy_session: str
    named: tuple[str, ...]  # conversations of people, agents and sessions with such names
    memories: tuple[str, ...]
    owner: str  # a person with such a name who has memories
    waiting: str  # the session of a turn that waits for somebody to allow such a call


def lay(desk: Desk) -> Bait:
    """Lay it out on a server."""
    asked = {"content": "\n\n".join(CORPUS)}
    talk = _talk(desk, "bait", [asked, *map(_said, CORPUS), *_acted()])
    desk.api("PATCH", f"/api/conversations/{talk}/state", {"state": {**dict.fromkeys(MARKUP, IMAGE), **ARGUMENTS}})
    heavy = _talk(desk, "heavy bait", [*map(_said, HEAVY)])
    named = tuple(_named(desk, name) for name in NAMES)
    desk.api("POST", "/api/chat", {"message": "bait: allow", "agent_id": "desk", "session_id": "waiting bait"})
    _fail(desk)
    return Bait(talk, "bait", heavy, "heavy bait", named, _remembered(desk), IMAGE, "waiting bait")


def _talk(desk: Desk, session: str, nodes: list[dict[str, Any]]) -> str:
    talk: str = desk.api("POST", "/api/conversations", {"agent": "desk", "session_id": session})["id"]
    desk.api("POST", f"/api/conversations/{talk}/nodes/batch", {"nodes": nodes})
    return talk


def _said(text: str) -> dict[str, Any]:
    return {"content": text, "context": "text:agent:desk", "payload": {"role": "assistant"}}


def _acted() -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [
        {"id": IMAGE, "name": IMAGE, "arguments": ARGUMENTS},
        {"id": "2", "name": "echo", "arguments": {}},
    ]
    result = {"role": "tool", "tool_name": IMAGE, "tool_call_id": IMAGE}
    return [
        {"content": IMAGE, "context": "text:agent:desk", "payload": {"role": "assistant", "tool_calls": calls}},
        {"content": IMAGE, "context": "text:agent:tool", "payload": result},
        {"content": IMAGE, "context": f"text:user:{IMAGE}", "payload": {IMAGE: ARGUMENTS}},
    ]


def _named(desk: Desk, name: str) -> str:
    talk = {"app": name, "agent": name, "user": name, "session_id": name}
    id: str = desk.api("POST", "/api/conversations", talk)["id"]
    desk.api("POST", f"/api/conversations/{id}/nodes", {"content": name, "context": f"text:user:{name}"})
    return id


def _fail(desk: Desk) -> None:
    """Have a turn fail with such a message."""
    try:
        desk.api("POST", "/api/chat", {"message": "bait: fail", "agent_id": "desk", "session_id": "failed bait"})
    except AssertionError as error:
        assert "onerror" in str(error)  # noqa: PT017 - it is the answer that was asked for


def _remembered(desk: Desk) -> tuple[str, ...]:
    drafts = [
        {"content": text, "type": name, "author": name, "source": name, "conversation": name, "metadata": {name: text}}
        for text, name in zip(CORPUS, NAMES * len(CORPUS), strict=False)
    ]
    for scope in ("user", "session", "agent"):
        desk.api("POST", "/api/memories", {"memories": drafts[:5], "owner": {"scope": scope, "name": IMAGE}})
    kept = desk.api("POST", "/api/memories", {"memories": drafts})["memories"]
    first, second = kept[0]["id"], kept[4]["id"]
    desk.api("PATCH", f"/api/memories/{first}", {"content": IMAGE * 2})
    desk.api("POST", f"/api/memories/{second}/supersede", {"content": IMAGE * 3})
    return tuple(memory["id"] for memory in kept)
