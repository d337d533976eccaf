"""The history of a run: the part of its conversation that it is shown, in the order of turns.

A turn is a message and everything that its run said. A queued message comes after the turns that were answered
meanwhile. A run is shown the turns before it, its own messages, and its own nodes. It is not shown messages that other
runs will answer, nor turns that failed because the model refused them. Pure functions: nodes in, nodes out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import msgspec

from holdfast.conversations.contexts import UNANSWERED, Context, by_agent
from holdfast.conversations.nodes import Node

STOPPED = "[Stopped before an answer.]"
FAILED = "[The turn failed before an answer.]"
REFUSED = frozenset({"model_failed"})  # error codes of failures that the same text can cause again


@dataclass(frozen=True, slots=True)
class History:
    """The nodes that a run is shown, oldest first.

    `left_out`: the turns without an answer since the last turn that is shown, each as the names of the tools that it
    called. `waiting`: the seq of the first message that another run will answer.
    """

    nodes: list[Node]
    left_out: list[list[str]]
    waiting: int | None


class NodeOrigin(NamedTuple):
    """The run that made a node, and the seqs of the messages that it answers. Nodes of old versions have no seqs."""

    run: str
    answers: tuple[int, ...]


def origin_of(node: Node) -> NodeOrigin | None:
    """Return the run that made a node, or None. A user's node has none, even if its payload names one."""
    payload = node.payload
    if payload is None or _context(node).name != "agent":
        return None
    run, answers = payload.get("run"), payload.get("answers")
    if not isinstance(run, str):
        return None
    given = cast(Sequence[object], answers) if isinstance(answers, list) else ()
    return NodeOrigin(run, tuple(seq for seq in given if isinstance(seq, int)))


def history(nodes: Iterable[Node], *, agent: str, run: str, triggers: Sequence[int], covered: int = 0) -> History:
    """Return what the run that answers `triggers` is shown. Turns up to the seq `covered` are summarised."""
    turns, others = _read(nodes)
    own_key = tuple(triggers)
    own = turns.pop(own_key, None) or _Turn()
    own.runs |= (turns.pop(run, None) or _Turn()).runs  # nodes of this run that an older version wrote
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
        elif turn_nodes := turn.to_history(agent):
            shown += turn_nodes
            left_out = [] if turn.runs else left_out
    shown += [*own.messages, *own.nodes(run)]
    return History(shown, left_out, waiting)


@dataclass(slots=True)
class _Turn:
    """Messages, and what each run that tried to answer them said, in order."""

    messages: list[Node] = field(default_factory=list[Node])
    runs: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    ending: Node | None = None  # marks that the last run ended without an answer
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
    def has_output(self) -> bool:
        """Whether a run said something."""
        return any(self.runs.values())

    @property
    def is_refused(self) -> bool:
        """Whether to leave the turn out: the model refused it, or its run failed before it said anything."""
        if self.ending is None:
            return False
        payload: dict[str, Any] = self.ending.payload or {}
        return payload.get("state") == "failed" and (payload.get("code") in REFUSED or not self.has_output)

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were called."""
        payloads = (node.payload or {} for nodes in self.runs.values() for node in nodes)
        return list(dict.fromkeys(str(payload["tool_name"]) for payload in payloads if payload.get("tool_name")))

    def nodes(self, run: str) -> list[Node]:
        """Return what this run said, after the calls and results of earlier runs, without their unfinished answers."""
        former = (node for other, nodes in self.runs.items() if other != run for node in nodes if _acts(node))
        return [*former, *self.runs.get(run, ())]

    def to_history(self, agent: str) -> list[Node]:
        """Return the turn as later turns see it. If it has no answer, it ends with a line that says so."""
        nodes = self.nodes(next(reversed(self.runs), ""))
        if self.ending is None or not (self.messages or nodes):
            return [*self.messages, *nodes]
        stopped = (self.ending.payload or {}).get("state") == "cancelled"
        line = msgspec.structs.replace(
            self.ending, context=str(by_agent(agent)), content=STOPPED if stopped else FAILED, payload=None
        )
        return [*self.messages, *nodes, line]


def _place(turn: _Turn, turns: Iterable[_Turn]) -> int:
    """Return the seq by which a turn is ordered. A turn that was stopped while queued comes after those before it."""
    if turn.has_output:
        return turn.place
    return max([turn.place, *(other.place for other in turns if other.has_output and other.first < turn.first)])


def _read(nodes: Iterable[Node]) -> tuple[dict[tuple[int, ...] | str, _Turn], list[Node]]:
    """Return the turns of runs, by the messages that they answer (old nodes: by run), and the nodes of others."""
    turns: dict[tuple[int, ...] | str, _Turn] = {}
    others: list[Node] = []
    for node in nodes:
        if node.deleted or not node.context or _context(node).type not in ("text", UNANSWERED):
            continue
        origin = origin_of(node)
        if origin is None:
            others.append(node)
        else:
            turns.setdefault(origin.answers or origin.run, _Turn()).add(origin.run, node)
    return turns, others


def _acts(node: Node) -> bool:
    payload = node.payload or {}
    return bool(payload.get("tool_calls") or payload.get("tool_call_id"))


def _context(node: Node) -> Context:
    return Context(*node.context.split(":", 2))  # stored contexts are valid
