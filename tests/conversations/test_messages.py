from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.conversations import Node
from holdfast.conversations.messages import BETWEEN, ModelMessage, as_messages

pytestmark = pytest.mark.req("CONV-05")

THEN = datetime(2026, 1, 1, tzinfo=UTC)
ME = "text:agent:support"
ANN = "text:user:ann"
TOOL = "text:agent:tool"


def talk(*said: tuple[str, str] | tuple[str, str, dict[str, Any]]) -> list[Node]:
    """Nodes in the order in which they were said: context, content and payload."""
    return [
        Node(
            UUID(int=seq), UUID(int=0), UUID(int=0), seq, what[0], what[1], what[2] if len(what) == 3 else None,
            None, None, 1, seq, False, THEN, THEN,
        )
        for seq, what in enumerate(said, 1)
    ]  # fmt: skip


def calling(*ids: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": id, "name": f"tool {id}", "arguments": {}} for id in ids]}


def answering(id: str) -> dict[str, Any]:
    return {"tool_call_id": id}


def seen(nodes: Sequence[Node], *, tools: bool = False, reader: str = "support") -> list[tuple[str, str]]:
    """Role and content of each message."""
    return [(message["role"], message["content"]) for message in as_messages(nodes, reader, tools=tools)]


def test_an_agents_own_nodes_are_the_assistants_and_all_others_are_the_users() -> None:
    nodes = talk(
        (ANN, "a"), (ME, "b"), ("text:agent:billing", "c"), (ME, "d"), (TOOL, "e"), ("text:system:system", "f")
    )

    assert seen(nodes) == [("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("user", "e\n\nf")]
    assert seen(nodes, reader="billing")[1] == ("assistant", "c")


def test_an_agent_without_a_name_is_taken_for_the_reader() -> None:
    assert seen(talk(("text:agent:assistant", "a"))) == [("assistant", "a")]


def test_roles_in_a_row_become_one_message() -> None:
    assert seen(talk((ANN, "a"), (ANN, "b"), (ME, "c"), (ME, "d"))) == [("user", "a\n\nb"), ("assistant", "c\n\nd")]


def test_what_is_blank_deleted_or_no_message_is_not_told() -> None:
    told = talk((ANN, "a"), (ANN, "  \n"), ("event:agent:support", "state"), ("summary:agent:support", "so far"))
    gone = Node(
        UUID(int=9), UUID(int=0), UUID(int=0), 9, ANN, "", None, None, None, 2, 9, True, THEN, THEN
    )  # fmt: skip
    root = Node(UUID(int=0), UUID(int=0), None, 0, "", "", None, None, None, 1, 0, False, THEN, THEN)

    assert seen([root, *told, gone]) == [("user", "a"), ("assistant", "so far")]
    assert seen([root, *told, gone], tools=True) == [("user", "a"), ("assistant", "so far")]


def test_a_call_is_followed_by_its_result() -> None:
    nodes = talk((ANN, "a"), (ME, "looking", calling("c1")), (TOOL, "found", answering("c1")), (ME, "there"))

    assert as_messages(nodes, "support", tools=True) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "looking", **calling("c1")},
        {"role": "tool", "content": "found", "tool_call_id": "c1", "name": "tool c1"},
        {"role": "assistant", "content": "there"},
    ]


def test_results_stand_behind_their_calls_whatever_was_said_between() -> None:
    nodes = talk(
        (ME, "", calling("c1", "c2")), (TOOL, "2", answering("c2")), (ANN, "hurry"), (TOOL, "1", answering("c1"))
    )

    assert seen(nodes, tools=True) == [("assistant", ""), ("tool", "1"), ("tool", "2"), ("user", "hurry")]


def test_a_call_without_a_result_and_a_result_without_a_call_are_told_as_text() -> None:
    nodes = talk((TOOL, "early", answering("c1")), (ME, "looking", calling("c1")), (TOOL, "other", answering("c2")))

    assert seen(nodes, tools=True) == [("user", "early"), ("assistant", "looking"), ("user", "other")]


def test_an_id_that_comes_again_calls_again() -> None:
    nodes = talk(
        (ME, "", calling("c")), (TOOL, "one", answering("c")), (ME, "", calling("c")), (TOOL, "two", answering("c"))
    )

    assert seen(nodes, tools=True) == [("assistant", ""), ("tool", "one"), ("assistant", ""), ("tool", "two")]


def test_a_second_result_of_one_call_is_told_as_text() -> None:
    nodes = talk((ME, "", calling("c")), (TOOL, "pending", answering("c")), (TOOL, "done", answering("c")))

    assert seen(nodes, tools=True) == [("assistant", ""), ("tool", "pending"), ("user", "done")]


def test_calls_of_other_agents_are_told_as_text() -> None:
    nodes = talk(("text:agent:billing", "looking", calling("c")), (TOOL, "found", answering("c")))

    assert seen(nodes, tools=True) == [("user", "looking\n\nfound")]


def test_a_system_message_is_one_for_models_that_know_them() -> None:
    nodes = talk(("text:system:system", "be kind"), (ANN, "a"))

    assert seen(nodes, tools=True) == [("system", "be kind"), ("user", "a")]
    assert seen(nodes) == [("user", "be kind\n\na")]


def test_a_user_called_tool_is_a_user() -> None:
    nodes = talk((ME, "", calling("c")), ("text:user:tool", "me", answering("c")))

    assert seen(nodes, tools=True) == [("user", "me")]


def as_result(id: str) -> dict[str, Any]:
    return {"role": "tool", **answering(id)}


def as_calls(ids: list[str]) -> dict[str, Any]:
    return calling(*ids)


@st.composite
def talks(draw: st.DrawFn) -> list[Node]:
    """Calls and results in any order, with texts that tell them apart, or none."""
    ids = st.sampled_from(["c1", "c2", "c3"])
    payloads = st.one_of(
        st.just(dict[str, Any]()),
        st.lists(ids, min_size=1, max_size=3).map(as_calls),
        ids.map(answering),
        ids.map(as_result),
        st.just({"role": "system"}),
    )
    contexts = st.sampled_from([ME, ANN, TOOL, "text:agent:assistant", "text:agent:billing", "text:system:system"])
    said = draw(st.lists(st.tuples(contexts, st.booleans(), payloads), max_size=30))
    return talk(
        *((context, f"<{number}>" if text else " ", payload) for number, (context, text, payload) in enumerate(said))
    )


def texts(messages: Sequence[ModelMessage]) -> list[str]:
    """Every text in the messages, as it was said."""
    return sorted(text for message in messages for text in message["content"].split(BETWEEN) if text.strip())


@given(talks())
def test_roles_alternate_in_the_text_and_nothing_is_lost(nodes: list[Node]) -> None:
    messages = as_messages(nodes, "support")

    roles = [message["role"] for message in messages]
    assert all(one != next for one, next in pairwise(roles))
    assert set(roles) <= {"user", "assistant"}
    said = [text for message in messages for text in message["content"].split(BETWEEN)]
    assert said == [node.content for node in nodes if node.content.strip()]
    assert all(set(message) == {"role", "content"} for message in messages)


@given(talks())
def test_calls_and_results_are_always_complete_and_nothing_is_lost(nodes: list[Node]) -> None:
    messages = as_messages(nodes, "support", tools=True)

    wanted: list[str] = []
    for before, message in zip([None, *messages], messages, strict=False):
        if wanted:
            assert (message["role"], message.get("tool_call_id")) == ("tool", wanted.pop(0))
            continue
        assert message["role"] != "tool"
        assert before is None or before["role"] != message["role"]
        wanted = [call["id"] for call in message.get("tool_calls", [])]
        assert len(wanted) == len(set(wanted))
    assert not wanted
    assert texts(messages) == sorted(node.content for node in nodes if node.content.strip())
