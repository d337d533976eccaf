"""Conversations that tests are about, and counters that need no model."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from holdfast.conversations import Node

THEN = datetime(2026, 1, 1, tzinfo=UTC)
ME = "text:agent:support"
ANN = "text:user:ann"
TOOL = "text:agent:tool"
SUMMARY = "summary:agent:support"


class Characters:
    """Every fourth character begins a token."""

    name = "characters"

    def __init__(self, per_token: int = 4) -> None:
        self._per_token = per_token
        self.counted = 0  # characters, so far

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        self.counted += len(text)
        return -(-len(text) // self._per_token)


def node(
    seq: int, context: str, content: str, payload: Mapping[str, Any] | None = None, *, deleted: bool = False
) -> Node:
    """A node as a conversation has it."""
    return Node(
        UUID(int=seq), UUID(int=0), UUID(int=0), seq, context, content, None if payload is None else dict(payload),
        None, None, 1, seq, deleted, THEN, THEN,
    )  # fmt: skip


def talk(*said: tuple[str, str] | tuple[str, str, Mapping[str, Any]]) -> list[Node]:
    """Nodes in the order in which they were said: context, content and payload."""
    return [node(seq, each[0], each[1], each[2] if len(each) == 3 else None) for seq, each in enumerate(said, 1)]


def calling(*ids: str, **arguments: Any) -> dict[str, Any]:
    """The payload of a message that calls the tool `track` once for each id."""
    return {"tool_calls": [{"id": id, "name": "track", "arguments": arguments} for id in ids]}


def answering(id: str) -> dict[str, Any]:
    """The payload of what a call gave."""
    return {"tool_call_id": id, "tool_name": "track"}


def made(payload: Mapping[str, Any] | None = None, *, answers: Sequence[int], run: str = "run") -> dict[str, Any]:
    """The payload of what a run said that answers messages."""
    return {**(payload or {}), "run": run, "answers": list(answers)}


@st.composite
def talks(draw: st.DrawFn, *, longest: int = 30) -> list[Node]:
    """Words, calls and results in any order and of any length, none of them told twice."""
    ids = st.sampled_from(["c1", "c2", "c3"])
    calls = st.lists(ids, min_size=1, max_size=3).map(lambda drawn: calling(*drawn, parcel="AB-123"))
    payloads = st.one_of(
        st.none(),
        calls,
        ids.map(answering),
        st.just({"role": "system"}),
        st.just({"covers": 3}),
        st.just({"covers": "x"}),
    )
    contexts = st.sampled_from(
        [
            ME,
            ANN,
            TOOL,
            SUMMARY,
            "text:agent:assistant",
            "text:agent:billing",
            "text:system:system",
            "event:agent:support",
        ]
    )
    lengths = st.one_of(st.integers(0, 40), st.integers(0, 4000))
    drawn = draw(st.lists(st.tuples(contexts, lengths, payloads, st.booleans()), min_size=1, max_size=longest))
    return [
        node(
            seq,
            context,
            f"<{seq}>" + "word " * (length // 5) if length else " ",
            payload,
            deleted=rare and seq % 5 == 0,
        )
        for seq, (context, length, payload, rare) in enumerate(drawn, 1)
    ]
