"""The window: the newest messages of a conversation, as many as fit.

A call and its results are shown together or not at all. The messages to answer are always shown. A message that takes
more than a third of the window loses its middle. A message keeps the form in which an earlier step showed it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from holdfast.agents.budget import MESSAGE_TOKENS
from holdfast.agents.quotation import fits, neutral, quoted, shortened
from holdfast.conversations.contexts import ASSISTANT, Context, by_user
from holdfast.conversations.messages import ModelMessage, as_messages
from holdfast.conversations.nodes import Node
from holdfast.conversations.payloads import Role, StoredToolCall, role_of
from holdfast.core.text import render
from holdfast.llm.model import ChatMessage
from holdfast.llm.model import ToolCall as ModelCall
from holdfast.llm.tokens import TokenCounter

LEAST = 32  # tokens that a shown message keeps at least, if it has as many
LEAST_TRIGGER = 256  # the same for a message to answer
OPENING = "[Nothing before this is shown.]"  # model APIs require that a user speaks first
GAP = "\n\n[{:,} messages that followed are left out here.]"
NO_OUTPUT = "(no output)"
RUN = "# Run "  # how a model calls a tool in plain text

_SYSTEM = str(by_user("system"))


@dataclass(frozen=True, slots=True)
class WindowMessage:
    """A node that is a message, and how it belongs to others."""

    node: Node
    role: Role
    is_own: bool
    calls: Sequence[StoredToolCall]
    caller: int | None  # the place of the message with the call that this one answers

    @property
    def is_from_others(self) -> bool:
        """Whether the message is neither from the agent nor from a tool."""
        return not self.is_own and not self.is_output

    @property
    def is_output(self) -> bool:
        """Whether the message is the output of a tool."""
        return self.caller is not None or (self.role == "tool" and not self.is_own)


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that are shown: the nodes `seqs`, of which those in `cut` lost their middle.

    From `first_seq` on, no message is left out. `forms`: how each node is shown.
    """

    messages: list[ChatMessage]
    tokens: int
    seqs: list[int]
    cut: frozenset[int]
    first_seq: int | None
    forms: "Forms" = field(default_factory=dict[UUID, "RenderedNode"])


@dataclass(frozen=True, slots=True)
class RenderedNode:
    """How a node is shown, and how many tokens that takes."""

    node: Node
    tokens: int
    is_cut: bool


Forms = Mapping[UUID, RenderedNode]


def window_messages(nodes: Iterable[Node], agent: str) -> list[WindowMessage]:
    """Return the messages among these nodes, as `agent` sees them. Summaries are not messages."""
    messages: list[WindowMessage] = []
    callers: dict[str, int] = {}
    for node in nodes:
        if node.deleted or not node.context:
            continue
        context = Context(*node.context.split(":", 2))  # stored contexts are valid
        if context.type != "text":
            continue
        role = role_of(context, node.payload)
        is_own = context.name == "agent" and context.value in (agent, ASSISTANT)
        payload: dict[str, Any] = node.payload or {}
        calls: Sequence[StoredToolCall] = (payload.get("tool_calls") if is_own else None) or ()
        answered = payload.get("tool_call_id") if role == "tool" else None
        caller = None if answered is None else callers.pop(answered, None)
        if caller is None and calls:
            callers.update((call["id"], len(messages)) for call in calls)
        messages.append(WindowMessage(node, role, is_own, calls, caller))
    return messages


def beginnings(messages: Sequence[WindowMessage]) -> Iterator[int]:
    """Yield the places, newest first, where a window can begin: not at tool output, nor between call and result."""
    reach = len(messages)
    for place in reversed(range(len(messages))):
        caller = messages[place].caller
        reach = min(reach, place if caller is None else caller)
        if reach == place and not messages[place].is_output:
            yield place


class WindowBuilder:
    """Fits an agent's conversations into a number of tokens.

    Without `native`, calls are shown in plain text, for a model that does not support tools.
    """

    def __init__(self, agent: str, counter: TokenCounter, *, native: bool = True, known: Forms | None = None) -> None:
        self._agent = agent
        self._counter = counter
        self._native = native
        self._known = known or {}  # how earlier steps showed nodes
        self._opening = MESSAGE_TOKENS + counter.count(OPENING)

    @property
    def marks(self) -> int:
        """The tokens that the marks of a window can take."""
        return self._opening + self._counter.count(GAP.format(10**9))

    def tokens(self, message: WindowMessage, limit: int) -> int:
        """Return the tokens of a message whose texts have at most `limit` tokens."""
        return self._show(message, limit).tokens

    def window(
        self, candidates: Sequence[WindowMessage], room: int, *, triggers: Collection[int], spare: int = 0
    ) -> Window:
        """Return the newest messages in at most `room` tokens, including those whose seqs are `triggers`.

        `spare`: tokens to leave free, so that the next steps have room.
        """
        left = room - self.marks
        trigger_places = [place for place, each in enumerate(candidates) if each.node.seq in triggers]
        shown: dict[int, RenderedNode] = {}
        if trigger_places:
            most = max(left * 2 // 3, min(left, LEAST_TRIGGER)) - MESSAGE_TOKENS
            shown = (
                self._group([(place, candidates[place]) for place in trigger_places], most, left, is_needed=True) or {}
            )
        left -= _total(shown)
        begin = len(candidates)
        for place in beginnings(candidates):
            messages = [(other, candidates[other]) for other in range(place, begin) if other not in trigger_places]
            is_newest = begin == len(candidates)
            group = self._group(messages, room // 3, left if is_newest else left - spare, is_needed=is_newest)
            if group is None:
                break
            shown |= group
            left -= _total(group)
            begin = place
        forms = {each.node.id: each for each in shown.values()}
        if shown.keys() & trigger_places and begin > trigger_places[-1] + 1:
            shown[trigger_places[-1]] = self._with_gap_mark(shown[trigger_places[-1]], begin - trigger_places[-1] - 1)
        messages = self._messages(shown[place].node for place in sorted(shown))
        opening = [] if messages and messages[0].role == "user" else [ChatMessage("user", OPENING)]
        return Window(
            opening + messages,
            _total(shown) + self._opening * len(opening),
            [candidates[place].node.seq for place in sorted(shown)],
            frozenset(each.node.seq for each in shown.values() if each.is_cut),
            candidates[begin].node.seq if begin < len(candidates) else None,
            forms,
        )

    def more(self, messages: Sequence[WindowMessage], limit: int) -> Window:
        """Return messages that follow a window. Each of their texts has at most `limit` tokens."""
        shown = [self._show(each, limit) for each in messages]
        return Window(
            self._messages(each.node for each in shown),
            sum(each.tokens for each in shown),
            [each.node.seq for each in messages],
            frozenset(each.node.seq for each in shown if each.is_cut),
            None,
            {each.node.id: each for each in shown},
        )

    def _messages(self, nodes: Iterable[Node]) -> list[ChatMessage]:
        return [_chat(message) for message in as_messages(nodes, self._agent, tools=self._native)]

    def _group(
        self, messages: Sequence[tuple[int, WindowMessage]], limit: int, left: int, *, is_needed: bool
    ) -> dict[int, RenderedNode] | None:
        """Return these messages by their places, or None if they do not fit together.

        Messages that are needed are cut until they fit.
        """
        group = {place: self._known.get(message.node.id) or self._show(message, limit) for place, message in messages}
        while _total(group) > left:
            limit = limit * 2 // 3
            if not is_needed or limit < LEAST:
                return None
            group = {place: self._show(message, limit) for place, message in messages}
        return group

    def _with_gap_mark(self, shown: RenderedNode, missing: int) -> RenderedNode:
        mark = GAP.format(missing)
        node = msgspec.structs.replace(shown.node, content=shown.node.content + mark)
        return RenderedNode(node, shown.tokens + self._counter.count(mark), shown.is_cut)

    def _show(self, message: WindowMessage, limit: int) -> RenderedNode:
        node, count = message.node, self._counter.count
        text, calls = self._text(message), message.calls
        content = shortened(text, limit, self._counter)
        is_cut = content is not text
        if message.is_output and not (self._native and message.caller is not None):
            content = quoted("tool_output", content)
        tokens = MESSAGE_TOKENS + count(content)
        changes: dict[str, Any] = {} if content == node.content else {"content": content}
        if self._native and calls:
            short_calls = [_call(call, limit, self._counter) for call in calls]
            tokens += sum(
                MESSAGE_TOKENS + count(call["id"]) + count(call["name"]) + count(_arguments(call))
                for call in short_calls
            )
            if any(one is not other for one, other in zip(short_calls, calls, strict=True)):
                is_cut = True
                changes["payload"] = {**(node.payload or {}), "tool_calls": short_calls}
        if message.caller is not None and node.payload:
            tokens += count(node.payload["tool_call_id"])
        if message.role == "system" and not message.is_own:
            # Only the agent's instructions are a system message: those in a conversation become user messages.
            changes |= {"context": _SYSTEM, "payload": None}
        return RenderedNode(msgspec.structs.replace(node, **changes) if changes else node, tokens, is_cut)

    def _text(self, message: WindowMessage) -> str:
        content = message.node.content
        if message.is_output:
            if not content.strip():
                return NO_OUTPUT
            return content if self._native and message.caller is not None else neutral(content)
        if message.calls and not self._native and RUN not in content:
            lines = [f"{RUN}{call['name']} {_arguments(call)}" for call in message.calls]
            return "\n".join([content, *lines] if content.strip() else lines)
        return content


def _total(shown: Mapping[int, RenderedNode]) -> int:
    return sum(each.tokens for each in shown.values())


def _arguments(call: StoredToolCall) -> str:
    return render(call["arguments"]).decode()


def _call(call: StoredToolCall, limit: int, counter: TokenCounter) -> StoredToolCall:
    """Return a call whose arguments have at most `limit` tokens; longer ones become a note of how much is left out."""
    arguments = _arguments(call)
    if fits(arguments, limit, counter):
        return call
    return {**call, "arguments": {"left_out": f"{len(arguments):,} characters"}}


def _chat(message: ModelMessage) -> ChatMessage:
    calls = tuple(ModelCall(call["id"], call["name"], _arguments(call)) for call in message.get("tool_calls", ()))
    return ChatMessage(message["role"], message["content"], calls, message.get("tool_call_id"), message.get("name"))
