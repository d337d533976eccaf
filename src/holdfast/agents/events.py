"""Events of a conversation, in order. Each has a cursor from which a watcher can resume.

Most events are made from nodes. The others are deltas: streamed text, approvals, decisions and the ends of runs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec

from holdfast.conversations.contexts import TOOL, parse_context
from holdfast.conversations.nodes import Node
from holdfast.core.errors import InvalidInput

Kind = Literal[
    "message", "thought", "action", "observation", "token", "thinking", "answer", "approval", "decision", "error",
    "done", "delete",
]  # fmt: skip

PER_RUN = 10**10  # delta numbers per run
PER_CLAIM = 10**7  # delta numbers per claim of a run

CURSOR = r"[0-9]{1,18}(\.[0-9]{1,18}){0,2}"
_CURSOR = re.compile(CURSOR)


class Cursor(NamedTuple):
    """A position in a conversation: its changes up to a revision, and its deltas up to the number `n`.

    `part`: how many events of the next revision were seen. A revision can change several nodes.
    """

    revision: int = 0
    n: int = 0
    part: int = 0

    def __str__(self) -> str:
        return f"{self.revision}.{self.n}.{self.part}" if self.part else f"{self.revision}.{self.n}"


def parse_cursor(text: str) -> Cursor:
    """Parse the cursor that a client sends."""
    if not _CURSOR.fullmatch(text):
        raise InvalidInput(f"the cursor {text[:50]!r} cannot be read", next="Give back the `cursor` of the last event.")
    return Cursor(*map(int, text.split(".")))


class Pieces(NamedTuple):
    """Text that a run in this process streams: rows have it up to `saved`, `unsaved` has the rest in the same form."""

    saved: int
    unsaved: Sequence[Mapping[str, Any]]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened in a conversation.

    `message` is a message to the agent. `thought` is what the agent says before it acts. `token` is a piece of the text
    that the agent is writing (`reset`: discard the pieces so far, the text begins again). `answer` is what the agent
    said. `version` above 1: the node was edited, and this event replaces the earlier one. `done` and `error` end a run.
    """

    kind: Kind
    cursor: str
    at: datetime
    run_id: UUID | None = None
    node_id: UUID | None = None
    seq: int | None = None
    version: int = 1
    author: str | None = None
    text: str = ""
    tool: str | None = None
    call_id: str | None = None
    arguments: Any = None
    failed: bool = False  # of an observation: the tool call failed
    reset: bool = False
    approval_id: UUID | None = None
    reason: str | None = None
    decision: str | None = None
    state: str | None = None  # how the run ended
    error: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None

    @property
    def size(self) -> int:
        """The approximate size in bytes."""
        return 200 + len(self.text) + (len(str(self.arguments)) if self.arguments else 0)


def events_of(nodes: Sequence[Node], n: int) -> list[Event]:
    """Return the events of the nodes of one revision. `n` is the number of the last delta before them."""
    revision = nodes[0].revision
    events = [(event, node.version) for node in nodes for event in _node_events(node)]
    parts = len(events)
    done = Cursor(revision, n)
    return [
        msgspec.structs.replace(
            event, cursor=str(done if place == parts else Cursor(revision - 1, n, place)), version=version
        )
        for place, (event, version) in enumerate(events, 1)
    ]


def delta_event(revision: int, n: int, run_id: UUID, kind: Kind, data: Mapping[str, Any], at: datetime) -> Event:
    """Build the event of a delta."""
    cursor = str(Cursor(revision, n))
    match kind:
        case "token" | "thinking":
            text, reset = data.get("text", ""), bool(data.get("reset"))
            return Event(kind=kind, cursor=cursor, at=at, run_id=run_id, text=text, reset=reset)
        case "approval" | "decision":
            return Event(
                kind=kind,
                cursor=cursor,
                at=at,
                run_id=run_id,
                approval_id=UUID(data["approval"]),
                call_id=data["call"],
                tool=data["tool"],
                arguments=data.get("arguments"),
                reason=data.get("reason"),
                decision=data.get("decision"),
                author=data.get("by"),
            )
        case _:
            error = data.get("error")
            usage = {name: data[name] for name in ("steps", "input_tokens", "output_tokens", "cost") if name in data}
            return Event(
                kind=kind,
                cursor=cursor,
                at=at,
                run_id=run_id,
                node_id=UUID(data["answer"]) if data.get("answer") else None,
                text=error["message"] if error else "",
                state=data["state"],
                error=error,
                usage=usage,
            )


def _node_events(node: Node) -> Iterator[Event]:
    payload = node.payload or {}
    about: dict[str, Any] = {
        "cursor": "",
        "at": node.updated_at,
        "run_id": _run(payload.get("run")),
        "node_id": node.id,
        "seq": node.seq,
    }
    if node.deleted:
        yield Event(kind="delete", **about)
        return
    context = parse_context(node.context) if node.context else None
    if context is None or context.type != "text":
        return
    about["author"] = context.value
    if context.name != "agent":
        yield Event(kind="message", text=node.content, **about)
    elif context.value == TOOL or payload.get("role") == "tool":
        yield Event(
            kind="observation",
            text=node.content,
            tool=payload.get("tool_name"),
            call_id=payload.get("tool_call_id"),
            failed=bool(payload.get("error")),
            **about,
        )
    elif payload.get("tool_calls"):
        if node.content.strip():
            yield Event(kind="thought", text=node.content, **about)
        for call in payload["tool_calls"]:
            yield Event(kind="action", tool=call["name"], call_id=call["id"], arguments=call["arguments"], **about)
    else:
        yield Event(kind="answer", text=node.content, **about)


def _run(given: object) -> UUID | None:
    """Return the run that a node names, or None. A caller that appends a node can write anything there."""
    try:
        return UUID(given) if isinstance(given, str) else None
    except ValueError:
        return None
