"""Stores what was said in a turn as memories, so that later turns recall it."""

import logging
from collections.abc import Sequence

from holdfast.conversations.contexts import by_user, parse_context
from holdfast.conversations.nodes import Node
from holdfast.core.errors import HoldfastError
from holdfast.llm.user_facts import lasting_part
from holdfast.memory import Memories
from holdfast.memory.drafts import MAX_CONTENT_BYTES, Draft
from holdfast.memory.memory import Trust
from holdfast.memory.owners import Owner, session, user

SESSION_IMPORTANCE = 0.6
LASTING_IMPORTANCE = 0.8

log = logging.getLogger(__name__)


async def remember_turn(
    memory: Memories,
    *,
    questions: Sequence[Node],
    answer: Node | None,
    session_id: str | None,
    person: str | None,
    agent: str,
) -> None:
    """Store what was said for the session, and lasting statements of the session's user for that user.

    Each memory has the key of its node, so that a repeated turn is stored once. A sentence that was said before
    refreshes its memory. An error of memory does not fail the turn.
    """
    try:
        said: list[tuple[Owner, Draft | None]] = []
        for question in questions:
            asker = parse_context(question.context)
            trust: Trust = "user" if asker.name == "user" else "agent"
            if session_id is not None:
                here = session(session_id, agent=agent, user=person, conversation=question.root)
                author = person if asker == by_user(person) else asker.value
                said.append((here, _said(question, question.content, session_id, author=author, trust=trust)))
            if person is not None and asker == by_user(person):  # only what the user said
                lasting = lasting_part(question.content) or ""
                kept = _said(question, lasting, session_id, author=person, trust=trust, importance=LASTING_IMPORTANCE)
                said.append((user(person), kept))
        if session_id is not None and answer is not None:
            here = session(session_id, agent=agent, user=person, conversation=answer.root)
            said.append((here, _said(answer, answer.content, session_id, author=agent, trust="agent")))
        await memory.remember_all([(owner, draft) for owner, draft in said if draft is not None])
    except HoldfastError as error:
        log.warning("what was said in %s could not be remembered: %s", questions[0].root, error)


def _said(
    node: Node,
    text: str,
    conversation: str | None,
    *,
    author: str | None,
    trust: Trust,
    importance: float = SESSION_IMPORTANCE,
) -> Draft | None:
    if not text.strip():
        return None
    data = text.encode(errors="surrogatepass")
    return Draft(
        text if len(data) <= MAX_CONTENT_BYTES else data[:MAX_CONTENT_BYTES].decode(errors="ignore"),
        importance=importance,
        trust=trust,
        source=node.id,
        key=f"node:{node.id}",
        conversation=conversation,
        seq=None if conversation is None else node.seq,
        author=author,
        at=node.created_at,
        once=True,
    )
