"""History: what a run is shown of its conversation, in the order of turns.

A turn is a message and all that its run said; a message that was queued stands behind what was answered meanwhile. A
run is shown the turns before it, its own messages, and its own nodes. It is not shown messages that other runs will
answer, nor turns that failed because the model refused them. Pure: nodes in, nodes out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import msgspec

from holdfast.conversations.contexts import UNANSWERED, Context, by_agent
from holdfast.conversations.nodes import Node

STOPPED = "[Stopped before an answer.]"
FAILED = "[The turn failed before an answer.]"
REFUSED = frozenset({"model_failed"})  # codes of failures that the same words may cause again


@dataclass(frozen=True, slots=True)
class History:
    """What a run is shown, oldest first.

    `left_out`: turns without an answer since the last one that is shown; each is the names of the tools that it called.
    `waiting`: the seq of the first message that another run will answer.
    """

    nodes: list[Node]
    left_out: list[list[str]]
    waiting: int | None


class Made(NamedTuple):
    """The run that made a node, and the seqs of the messages that it answers (none: the node is of an old version)."""

    run: str
    answers: tuple[int, ...]


def made_by(node: Node) -> Made | None:
    """The run that made a node; users' nodes are made by none, whatever their payloads say."""
    payload = node.payload
    if payload is None or _context(node).name != "agent":
        return None
    run, answers = payload.get("run"), payload.get("answers")
    if not isinstance(run, str):
        return None
    given = cast(Sequence[object], answers) if isinstance(answers, list) else ()
    return Made(run, tuple(seq for seq in given if isinstance(seq, int)))


def history(nodes: Iterable[Node], *, agent: str, run: str, triggers: Sequence[int], covered: int = 0) -> History:
    """What the run that answers `triggers` is shown of these nodes; turns up to the seq `covered` are summarised."""
    turns, others = _read(nodes)
    own_key = tuple(triggers)
    own = turns.pop(own_key, None) or _Turn()
    own.runs |= (turns.pop(run, None) or _Turn()).runs  # what it said before an upgrade
    answered = {seq: turn for key, turn in turns.items() if isinstance(key, tuple) for seq in key}
    placed: list[tuple[int, int, _Turn]] = []
    waiting: int | None = None
    last = max(triggers)
    for node in others:
        if node.seq in own_key:
            own.messages.append(node)
        elif node.seq in answered:
            answered[node.seq].messages.append(node)
        elif node.seq < last:
            if node.seq > covered:
                placed.append((node.seq, 0, _Turn([node])))
        elif waiting is None:
            waiting = node.seq
    placed += [(_place(turn, turns.values()), turn.first, turn) for turn in turns.values() if turn.last > covered]
    placed.sort(key=lambda each: each[:2])

    shown: list[Node] = []
    left_out: list[list[str]] = []
    for _, _, turn in placed:
        if turn.is_refused:
            left_out += [turn.tools] if turn.messages else []
        elif told := turn.told(agent):
            shown += told
            left_out = [] if turn.runs else left_out
    shown += [*own.messages, *own.nodes(run)]
    return History(shown, left_out, waiting)


@dataclass(slots=True)
class _Turn:
    """Messages, and what the runs that tried to answer them said, each run in its order."""

    messages: list[Node] = field(default_factory=list[Node])
    runs: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    ending: Node | None = None  # says that the last run ended without an answer
    place: int = 0  # the first seq of the last run
    last: int = 0

    def add(self, run: str, node: Node) -> None:
        self.last = node.seq
        if run not in self.runs:
            self.runs[run] = []
            self.place = node.seq
        if _context(node).type == UNANSWERED:
            self.ending = node
        else:
            self.ending = None
            self.runs[run].append(node)

    @property
    def first(self) -> int:
        """The seq of its first message."""
        return min((node.seq for node in self.messages), default=0)

    @property
    def has_said(self) -> bool:
        """Whether a run said something."""
        return any(self.runs.values())

    @property
    def is_refused(self) -> bool:
        """Whether to leave the turn out: the model refused it, or its run failed before it said anything."""
        if self.ending is None:
            return False
        payload: dict[str, Any] = self.ending.payload or {}
        return payload.get("state") == "failed" and (payload.get("code") in REFUSED or not self.has_said)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were called."""
        said = (node.payload or {} for nodes in self.runs.values() for node in nodes)
        return list(dict.fromkeys(str(payload["tool_name"]) for payload in said if payload.get("tool_name")))

    def nodes(self, run: str) -> list[Node]:
        """What this run said, after the calls and results of the runs before it; not what those began to answer."""
        former = (node for other, nodes in self.runs.items() if other != run for node in nodes if _acts(node))
        return [*former, *self.runs.get(run, ())]

    def told(self, agent: str) -> list[Node]:
        """The turn for later turns, with a line of the agent's where there is no answer."""
        said = self.nodes(next(reversed(self.runs), ""))
        if self.ending is None or not (self.messages or said):
            return [*self.messages, *said]
        stopped = (self.ending.payload or {}).get("state") == "cancelled"
        line = msgspec.structs.replace(
            self.ending, context=str(by_agent(agent)), content=STOPPED if stopped else FAILED, payload=None
        )
        return [*self.messages, *said, line]


def _place(turn: _Turn, turns: Iterable[_Turn]) -> int:
    """The seq by which a turn is placed; one that was stopped while it waited stands behind those before it."""
    if turn.has_said:
        return turn.place
    return max([turn.place, *(other.place for other in turns if other.has_said and other.first < turn.first)])


def _read(nodes: Iterable[Node]) -> tuple[dict[tuple[int, ...] | str, _Turn], list[Node]]:
    """What runs said, by the messages that they answer or, in old nodes, by the run; and what others said."""
    turns: dict[tuple[int, ...] | str, _Turn] = {}
    others: list[Node] = []
    for node in nodes:
        if node.deleted or not node.context or _context(node).type not in ("text", UNANSWERED):
            continue
        made = made_by(node)
        if made is None:
            others.append(node)
        else:
            turns.setdefault(made.answers or made.run, _Turn()).add(made.run, node)
    return turns, others


def _acts(node: Node) -> bool:
    payload = node.payload or {}
    return bool(payload.get("tool_calls") or payload.get("tool_call_id"))


def _context(node: Node) -> Context:
    return Context(*node.context.split(":", 2))  # what is stored has been parsed before
