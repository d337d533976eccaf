"""LangChain's chat history on Holdfast's conversations.

`HoldfastChatMessageHistory` is for programs that can change the class that they use. Other programs can use LangChain's
own `PostgresChatMessageHistory` on the view `chat_message_history`, whose functions convert messages as this module
does.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from holdfast.adapters.engine_thread import SharedEngine
from holdfast.adapters.langchain_retriever import HoldfastRetriever
from holdfast.conversations import Conversation, Node, NodeInput
from holdfast.conversations.contexts import ASSISTANT, BY_SYSTEM, BY_TOOL, MAX_VALUE, by_agent, by_user, parse_context
from holdfast.conversations.conversations import APP, MAX_NODES
from holdfast.conversations.payloads import Attachment, Payload, Role, role_of
from holdfast.core.errors import InvalidInput
from holdfast.core.text import dumps, loads, store
from holdfast.engine import Engine
from holdfast.postgres.database import Transaction

__all__ = ["HoldfastChatMessageHistory", "HoldfastRetriever"]

FORM = "langchain"

_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"ai|assistant|model"), "assistant"),
    (re.compile(r"system|developer"), "system"),
    (re.compile(r"tool|function"), "tool"),
)
_ATTACHED = frozenset({"image", "image_url", "audio", "input_audio", "video", "file"})
_INLINED = re.compile(r"data:([^;,]*)")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # names that models accept


class HoldfastChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session. A session id can be any string; the first message creates the session.

    `engine`: an open engine, an address, or None for the database of the settings. Its connections are pooled, so that
    a history is cheap to create. `user`: the user of the session. A session without a user becomes theirs; a session of
    another user with the same id is not touched. `agent`: the agent that answers. `window`: read only this many of the
    newest messages, selected in SQL; None reads all. It counts *messages*, whereas the `k` of
    `ConversationBufferWindowMemory` counts exchanges, which are 2k messages.

    Messages of one call are stored next to each other, all or none. A message with an id is stored once. After a
    `clear` it can be added again: LangChain programs shorten a history that way.
    """

    def __init__(
        self,
        session_id: str,
        engine: Engine | str | None = None,
        *,
        tenant: str | None = None,
        app: str = APP,
        user: str | None = None,
        agent: str | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__()
        if window is not None and window < 0:
            raise InvalidInput(f"the window {window} is invalid", next="Use 0 or more messages, or None for all.")
        self.session_id = session_id
        self._hosted = SharedEngine.of(engine, tenant)
        self._app = app
        self._user = user
        self._agent = agent
        self._window = window

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages, oldest first. Setting them replaces the current ones."""
        return self.get_messages()

    @messages.setter
    def messages(self, messages: Sequence[BaseMessage]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._hosted.run_sync(lambda engine: self._replace(engine, messages))

    def get_messages(self) -> list[BaseMessage]:
        """Return the messages, oldest first."""
        return self._hosted.run_sync(self._read)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, oldest first."""
        return await self._hosted.run(self._read)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages next to each other, all or none."""
        self._hosted.run_sync(lambda engine: self._add(engine, messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages next to each other, all or none."""
        await self._hosted.run(lambda engine: self._add(engine, messages))

    def clear(self) -> None:
        """Empty every message. Their former versions stay readable in the conversation."""
        self._hosted.run_sync(self._clear)

    async def aclear(self) -> None:
        """Empty every message. Their former versions stay readable in the conversation."""
        await self._hosted.run(self._clear)

    def close(self) -> None:
        """Release the engine. An engine that was opened for an address is closed with its last user."""
        self._hosted.close_sync()

    async def aclose(self) -> None:
        """Release the engine, like `close`."""
        await self._hosted.close()

    # These run on the engine's event loop.

    async def _read(self, engine: Engine) -> list[BaseMessage]:
        conversation = await self._find(engine)
        if conversation is None:
            return []
        agent = conversation.agent or self._agent
        nodes = await (
            _all(engine, conversation) if self._window is None else _last(engine, conversation, self._window)
        )
        return [message_of(node, agent=agent) for node in nodes]

    async def _replace(self, engine: Engine, messages: Sequence[BaseMessage]) -> None:
        conversation = await self._find(engine)
        async with engine.transaction() as tx:
            if conversation is not None:
                await engine.conversations.clear(conversation.id, tx=tx)
            await self._add(engine, messages, tx)

    async def _add(self, engine: Engine, messages: Sequence[BaseMessage], tx: Transaction | None = None) -> None:
        if not messages:
            return
        conversation = await engine.conversations.ensure(
            self.session_id, app=self._app, user=self._user, agent=self._agent, tx=tx
        )
        agent, user = conversation.agent or self._agent, conversation.user or self._user
        drafts = [draft_of(message, agent=agent, user=user) for message in messages]
        await engine.conversations.append_all(conversation.id, drafts, tx=tx)

    async def _clear(self, engine: Engine) -> None:
        conversation = await self._find(engine)
        if conversation is not None:
            await engine.conversations.clear(conversation.id)

    async def _find(self, engine: Engine) -> Conversation | None:
        find = engine.conversations.find
        return await find(session_id=self.session_id, user=self._user, app=self._app, adopts=True)


def draft_of(message: BaseMessage, *, agent: str | None = None, user: str | None = None) -> NodeInput:
    """Convert a message to a node. `agent` and `user` are the speakers if the message has no name."""
    native = message_to_dict(message)
    data: dict[str, Any] = native["data"]
    blocks = _blocks(data.get("content"))
    role = _role(message.type, data)
    name = _text(data.get("name"))
    if name is not None and not 1 <= len(store(name)) <= MAX_VALUE:
        name = None
    speakers = {
        "user": by_user(name or user),
        "assistant": by_agent(name or agent),
        "system": BY_SYSTEM,
        "tool": BY_TOOL,
    }
    return NodeInput(
        content="".join(_text(block.get("text")) or "" for block in blocks if block.get("type") == "text"),
        context=speakers[role],
        payload=_payload(role, data),
        key=message.id or None,
        form=FORM,
        native=dumps(native),
    )


def message_of(node: Node, *, agent: str | None = None) -> BaseMessage:
    """Convert a node to a message: LangChain's own if it is stored, else from the canonical part.

    `agent` is the agent of the conversation. Messages of other agents become messages to it.
    """
    if node.form == FORM and node.native is not None:
        # Fails if LangChain does not know the class, or the JSON is not a message.
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            return messages_from_dict([loads(node.native)])[0]
    context = parse_context(node.context)
    payload = node.payload or {}
    foreign = context.name == "agent" and context.value not in (ASSISTANT, agent or ASSISTANT)
    role = role_of(context, payload)
    if role == "assistant" and foreign and agent is not None and "role" not in payload:
        role = "user"
    attachments = payload.get("attachments")
    common: dict[str, Any] = {
        "content": node.content or _result_text(payload),
        "id": str(node.id),
        "additional_kwargs": {} if attachments is None else {"attachments": attachments},
    }
    if role == "tool":
        return ToolMessage(
            **common,
            name=payload.get("tool_name"),
            tool_call_id=payload.get("tool_call_id") or "",
            artifact=payload.get("result"),
            status="error" if payload.get("error") else "success",
        )
    common["name"] = context.value if foreign and _PLAIN_NAME.fullmatch(context.value) else None
    if role == "assistant":
        calls = [
            ToolCall(name=call["name"], args=call["arguments"], id=call["id"], type="tool_call")
            for call in payload.get("tool_calls") or ()
        ]
        return AIMessage(**common, tool_calls=calls)
    return SystemMessage(**common) if role == "system" else HumanMessage(**common)


def _role(type: str, data: Mapping[str, Any]) -> Role:
    name = str(data.get("role")) if type.lower().startswith("chat") else type
    for form, role in _ROLES:
        if form.match(name.lower()):
            return role
    return "user"


def _payload(role: Role, data: Mapping[str, Any]) -> Payload:
    payload: Payload = {"role": role}
    calls = data.get("tool_calls")
    if calls:
        payload["tool_calls"] = [
            {"id": call["id"] or "", "name": call["name"], "arguments": call["args"]} for call in calls
        ]
    attached = [_attachment(block) for block in _blocks(data.get("content")) if block.get("type") in _ATTACHED]
    if attached:
        payload["attachments"] = attached
    if role == "tool":
        call_id, name = data.get("tool_call_id"), data.get("name")
        if call_id is not None:
            payload["tool_call_id"] = call_id
        if name is not None:
            payload["tool_name"] = name
    if data.get("status") == "error":
        payload["error"] = True
    return payload


def _blocks(content: object) -> list[dict[str, Any]]:
    """Return the content as blocks. Plain text becomes one block."""
    parts = cast(list[Any], content) if isinstance(content, list) else [content]
    return [part if isinstance(part, dict) else {"type": "text", "text": part} for part in parts]


def _attachment(block: Mapping[str, Any]) -> Attachment:
    """Return the media type, name and URI of an attachment, without its data."""
    image, file = block.get("image_url"), block.get("file")
    inner = cast(Mapping[str, Any], image) if isinstance(image, dict) else {"url": image}
    url = _text(block.get("url")) or _text(inner.get("url"))
    inlined = _INLINED.match(url) if url is not None else None
    name = block.get("filename")
    if name is None and isinstance(file, dict):
        name = cast(Mapping[str, Any], file).get("filename")
    fields = {
        "mime_type": _text(block.get("mime_type")) or (inlined[1] if inlined else None),
        "name": _text(name) or _text(block.get("name")),
        "uri": None if inlined else url,
    }
    return cast(Attachment, {part: value for part, value in fields.items() if value})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _result_text(payload: Mapping[str, Any]) -> str:
    result = payload.get("result")
    return "" if result is None else result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


async def _all(engine: Engine, conversation: Conversation) -> list[Node]:
    found: list[Node] = []
    seq = 0
    while nodes := await engine.conversations.since(conversation.id, seq, native=FORM):
        found += _messages_in(nodes)
        if len(nodes) < MAX_NODES:
            break
        seq = nodes[-1].seq
    return found


async def _last(engine: Engine, conversation: Conversation, count: int) -> list[Node]:
    found: list[Node] = []
    limit, before = count, None
    while len(found) < count:
        limit = min(limit, MAX_NODES)
        nodes = await engine.conversations.last(conversation.id, limit, before=before, native=FORM)
        found = [*_messages_in(nodes), *found]
        if len(nodes) < limit:
            break
        limit, before = 2 * limit, nodes[0].seq  # some of the nodes are not messages
    return found[-count:] if count else []


def _messages_in(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if node.context.startswith("text:") and not node.deleted]
