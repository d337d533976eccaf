"""What a run is shown: the order of turns, and prompts that only grow, whatever happens meanwhile."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents.budget import PromptBudget
from holdfast.agents.history import FAILED, STOPPED, history
from holdfast.agents.prompt import Prompt, PromptInputs, assemble, extend_prompt, reduce_prompt, restore_prompt
from holdfast.agents.summaries import to_summarise
from holdfast.agents.window import OPENING
from holdfast.conversations import Node
from holdfast.core.errors import TooLarge
from holdfast.core.text import dumps, loads
from holdfast.llm.anthropic import AnthropicModel
from holdfast.llm.model import ChatMessage, ModelRequest, ToolSpec
from holdfast.llm.openai import OpenAiModel
from tests.agents.talks import ANN, ME, TOOL, Characters, answering, calling, made, node, talk

pytestmark = pytest.mark.req("AGENT-07")

NOW = datetime(2026, 11, 15, 10, 2, tzinfo=UTC)
GONE = "unanswered:agent:support"
TRACK = ToolSpec("track", "Where a parcel is.", {"type": "object", "properties": {"parcel": {"type": "string"}}})
COUNTER = Characters(1)


def unanswered(seq: int, answers: Sequence[int], run: str, *, state: str = "failed", code: str | None = None) -> Node:
    """The node that says that a run ended without an answer."""
    return node(seq, GONE, "not answered", {"run": run, "answers": list(answers), "state": state, "code": code})


def seen(nodes: Sequence[Node], *triggers: int, run: str = "now") -> list[str]:
    """What a run is shown that answers these messages."""
    return [each.content for each in history(nodes, agent="support", run=run, triggers=triggers).nodes]


def test_later_messages_and_messages_of_other_runs_are_not_shown() -> None:
    nodes = talk((ANN, "one"), (ME, "call", made(answers=[1], run="now")), (ANN, "two"), (ANN, "three"))

    assert seen(nodes, 1) == ["one", "call"]
    assert history(nodes, agent="support", run="now", triggers=[1]).waiting == 3


def test_a_queued_message_stands_behind_what_was_answered_meanwhile() -> None:
    nodes = talk(
        (ANN, "one"),
        (ANN, "two"),
        (ME, "answer to one", made(answers=[1], run="first")),
        (ANN, "three"),
        (ME, "answer to two", made(answers=[2], run="second")),
    )

    assert seen(nodes, 4) == ["one", "answer to one", "two", "answer to two", "three"]


def test_merged_messages_stand_together_before_their_answer() -> None:
    nodes = talk(
        (ANN, "one"),
        (ANN, "two"),
        (ANN, "three"),
        (ME, "answer to one", made(answers=[1], run="first")),
        (ME, "answer to both", made(answers=[2, 3], run="second")),
        (ANN, "four"),
    )

    assert seen(nodes[:4], 2, 3) == ["one", "answer to one", "two", "three"]
    assert seen(nodes, 6) == ["one", "answer to one", "two", "three", "answer to both", "four"]


def test_a_message_that_a_stranger_wrote_is_shown_with_the_next_one() -> None:
    assert seen(talk((ANN, "written"), (ANN, "sent"), (ANN, "written later")), 2) == ["written", "sent"]


@pytest.mark.parametrize(
    ("state", "code", "acted", "shown"),
    [
        ("failed", "model_failed", False, ["next"]),
        ("failed", "model_failed", True, ["next"]),
        ("failed", "limit_reached", False, ["next"]),
        ("failed", "limit_reached", True, ["no good", "call", "paid", FAILED, "next"]),
        ("cancelled", None, False, ["no good", STOPPED, "next"]),
        ("cancelled", None, True, ["no good", "call", "paid", STOPPED, "next"]),
    ],
)
def test_a_message_without_an_answer_is_left_out_or_ends_with_a_line(
    state: str, code: str | None, acted: bool, shown: list[str]
) -> None:
    act = [
        node(2, ME, "call", made(calling("c1"), answers=[1], run="first")),
        node(3, TOOL, "paid", made(answering("c1"), answers=[1], run="first")),
    ]
    nodes = [
        node(1, ANN, "no good"),
        *(act if acted else []),
        unanswered(4, [1], "first", state=state, code=code),
        node(5, ANN, "next"),
    ]

    told = history(nodes, agent="support", run="now", triggers=[5])

    assert [each.content for each in told.nodes] == shown
    assert told.left_out == ([["track"] if acted else []] if shown == ["next"] else [])


def test_a_retry_shows_what_was_answered_meanwhile_then_its_message_and_what_was_done_for_it() -> None:
    nodes = [
        node(1, ANN, "pay"),
        node(2, ME, "call", made(calling("c1"), answers=[1], run="first")),
        node(3, TOOL, "paid", made(answering("c1"), answers=[1], run="first")),
        unanswered(4, [1], "first", code="model_failed"),
        node(5, ANN, "hello"),
        node(6, ME, "good day", made(answers=[5], run="second")),
        node(7, ME, "It is", made({"stopped": True}, answers=[1], run="third")),
        node(8, ANN, "thanks"),
    ]

    assert seen(nodes[:6], 1) == ["hello", "good day", "pay", "call", "paid"]
    assert seen(nodes, 1) == ["hello", "good day", "pay", "call", "paid"], "what a former try began to say is dropped"
    assert seen(nodes, 8) == ["hello", "good day", "pay", "call", "paid", "It is", "thanks"]


def test_a_user_cannot_put_words_into_a_run() -> None:
    nodes = talk((ANN, "one"), (ANN, "me too", made(answers=[1], run="now")))

    assert seen(nodes, 1) == ["one"]


def test_a_summary_covers_no_message_that_waits_and_tears_no_turn_apart() -> None:
    long = "word " * 40
    nodes = [
        *(node(seq, ANN, long) for seq in range(1, 7)),
        node(7, ANN, "queued"),
        *(node(seq, ME, long, made(answers=[6], run="first")) for seq in range(8, 20)),
        node(20, ANN, long),
    ]
    told = history(nodes, agent="support", run="first", triggers=[6])

    taken = to_summarise(told.nodes, Characters(), PromptBudget(1000), agent="support", waiting=told.waiting)

    assert taken is not None
    assert max(each.seq for each in taken) < 7


def test_a_recorded_prompt_is_restored_also_where_the_record_has_long_texts_by_their_hash_alone() -> None:
    nodes = talk((ANN, "long " * 5000), (ME, "Well.", made(answers=[1], run="first")), (ANN, "short"))
    given = PromptInputs(agent="support", instructions="Help.", nodes=nodes, triggers=[3], now=NOW, run="now")
    first = assemble(given, Characters(), PromptBudget(100_000))
    record = loads(dumps(first.to_record()))
    changed = [nodes[0], *(msgspec.structs.replace(each, content="edited") for each in nodes[1:])]
    edited = assemble(replace(given, nodes=changed, notes="new"), Characters(), PromptBudget(100_000))
    lost = assemble(
        replace(given, nodes=[msgspec.structs.replace(nodes[0], content="cut"), *nodes[1:]]),
        Characters(),
        PromptBudget(100_000),
    )

    again = restore_prompt(edited, record)

    assert again is not None
    assert (again.messages, again.tokens, again.last_seq) == (first.messages, first.tokens, 3)
    assert restore_prompt(lost, record) is None
    assert restore_prompt(edited, {**record, "counter": "another"}) is None


# Whatever happens in a conversation, in any order


@dataclass
class Story:
    """A conversation that grows by what is drawn, with the prompts that each run was given."""

    native: bool
    total: int
    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    queue: list[tuple[str, list[int]]] = field(default_factory=list[tuple[str, list[int]]])
    number: int = 0
    prompt: Prompt | None = None
    material: PromptInputs | None = None
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    prompts: list[tuple[str, Prompt, bool]] = field(default_factory=list[tuple[str, Prompt, bool]])

    @property
    def now(self) -> tuple[str, list[int]] | None:
        """The run under way: its id, and the messages that it answers."""
        return self.queue[0] if self.queue else None

    def add(self, context: str, text: str, payload: dict[str, Any] | None = None) -> int:
        seq = len(self.nodes) + 1
        self.nodes[seq] = node(seq, context, f"<{seq}> {text}", payload)
        return seq

    def message(self, words: int, *, merge: bool) -> None:
        """Somebody says something, which has a run of its own or joins the last that has not begun."""
        seq = self.add(ANN, "asks " * words)
        if merge and len(self.queue) > 1:
            self.queue[-1][1].append(seq)
        else:
            self.number += 1
            self.queue.append((f"run-{self.number}", [seq]))

    def step(self, words: int, calls: int) -> None:
        """The run under way is shown its prompt, and calls tools or answers."""
        if self.now is None:
            return
        run, triggers = self.now
        try:
            self.ask(run, triggers)
        except TooLarge:
            self.fail("failed", "too_large")
            return
        if not calls:
            self.add(ME, "answers " * words, made(answers=triggers, run=run))
            self.end()
            return
        ids = [f"{len(self.nodes)}-{number}" for number in range(calls)]
        self.add(ME, "thinks", made(calling(*ids, parcel="AB-1"), answers=triggers, run=run))
        for id in ids:
            self.add(TOOL, "found " * words, made(answering(id), answers=triggers, run=run))

    def ask(self, run: str, triggers: list[int]) -> None:
        """As the briefing of a turn does."""
        budget, native = PromptBudget(self.total), self.native
        nodes = [each for each in self.nodes.values() if not each.deleted]
        if self.prompt is None or self.material is None:
            self.material = PromptInputs(
                agent="support", instructions="Help.", nodes=nodes, triggers=triggers, now=NOW, run=run, tools=[TRACK]
            )
            self.prompt = assemble(self.material, COUNTER, budget, native_tools=native)
            if self.records:
                self.prompt = restore_prompt(self.prompt, self.records[-1]) or self.prompt
        former = self.prompt
        new = [
            each for each in nodes
            if each.seq > former.last_seq and (each.payload or {}).get("run") == run and each.context != GONE
        ]  # fmt: skip
        known = {each.id for each in self.material.nodes}
        self.material = replace(
            self.material, nodes=[*self.material.nodes, *(each for each in new if each.id not in known)]
        )
        longer = extend_prompt(former, self.material, new, COUNTER, budget, native_tools=native)
        is_drop = longer is None
        self.prompt = longer or reduce_prompt(former, self.material, COUNTER, budget, native_tools=native)
        self.records.append(loads(dumps(self.prompt.to_record())))
        self.prompts.append((run, self.prompt, is_drop))

    def end(self) -> None:
        self.queue.pop(0)
        self.prompt = self.material = None
        self.records = []

    def fail(self, state: str, code: str | None) -> None:
        """The run under way ends without an answer."""
        if self.now is not None:
            run, triggers = self.now
            self.add(GONE, "", {"run": run, "answers": triggers, "state": state, "code": code})
            self.end()

    def crash(self) -> None:
        """Another process goes on: it knows the rows alone."""
        self.prompt = self.material = None

    def change(self, place: int, *, delete: bool) -> None:
        """Somebody edits or deletes what was said; not a message that waits for its answer."""
        waiting = {seq for _, triggers in self.queue for seq in triggers}
        seqs = [seq for seq, each in self.nodes.items() if seq not in waiting and each.context == ANN]
        if seqs:
            seq = seqs[place % len(seqs)]
            self.nodes[seq] = msgspec.structs.replace(self.nodes[seq], content=f"<{seq}> edited", deleted=delete)


steps = st.one_of(
    st.tuples(st.just("message"), st.integers(1, 30), st.booleans()),
    st.tuples(st.just("step"), st.integers(1, 30), st.integers(0, 3)),
    st.tuples(st.just("step"), st.integers(1, 30), st.integers(1, 3)),
    st.tuples(st.just("change"), st.integers(0, 50), st.booleans()),
    st.tuples(st.just("crash")),
    st.tuples(st.just("fail"), st.sampled_from(["failed", "cancelled"]), st.sampled_from(["model_failed", None])),
)


def happens(story: Story, kind: str, *given: Any) -> None:
    """One thing happens in a conversation."""
    match kind:
        case "message":
            story.message(given[0], merge=given[1])
        case "step":
            story.step(*given)
        case "change":
            story.change(given[0], delete=given[1])
        case "crash":
            story.crash()
        case _:
            story.fail(*given)


@settings(max_examples=200)
@given(st.lists(steps, min_size=5, max_size=60), st.booleans(), st.sampled_from([2000, 4000, 100_000]))
def test_whatever_happens_meanwhile_each_step_extends_the_one_before(
    drawn: list[tuple[Any, ...]], native: bool, total: int
) -> None:
    story = Story(native, total)
    for kind, *happening in drawn:
        happens(story, kind, *happening)

    for (run, former, _), (next_run, later, is_drop) in pairwise(story.prompts):
        if run == next_run and not is_drop:
            assert later.messages[: len(former.messages)] == former.messages
            assert later.tools[: len(former.tools)] == former.tools
        elif run == next_run and not former.is_patched:  # the oldest are gone, and no other has changed
            assert later.messages[0] == former.messages[0]
            assert all(is_kept(message, former) for message in later.messages)
    for _, prompt, _ in story.prompts:
        check(prompt, native=native, total=total)


def is_kept(message: ChatMessage, former: Prompt) -> bool:
    """Whether a message is new, was there before, or says that others are left out."""
    seqs = [int(seq) for seq in re.findall(r"<(\d+)>", message.content)]
    is_new = (bool(seqs) and min(seqs) > former.last_seq) or message.role == "tool"
    return is_new or message in former.messages or message.content == OPENING or "left out here" in message.content


def check(prompt: Prompt, *, native: bool, total: int) -> None:
    """A prompt fits, its roles alternate in every provider's form, and each call has its result."""
    assert prompt.tokens == sum(part.tokens for part in prompt.parts) <= total
    roles = [message.role for message in prompt.messages]
    assert roles[:2] == ["system", "user"]
    assert all(one != other or one == "tool" for one, other in pairwise(roles))
    assert roles[-1] in (("user", "tool") if native else ("user",)), "a model is asked, not continued"
    request = ModelRequest(messages=prompt.messages, tools=prompt.tools if native else [])
    check_openai(body(OpenAiModel, request)["messages"])
    check_anthropic(body(AnthropicModel, request)["messages"])


def body(model: Any, request: ModelRequest) -> Any:
    """What is sent to a provider."""
    return model("x:y", None)._body(request)


def check_openai(messages: list[dict[str, Any]]) -> None:
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert not open_calls
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert not open_calls


def check_anthropic(turns: list[dict[str, Any]]) -> None:
    assert [turn["role"] for turn in turns] == [["user", "assistant"][n % 2] for n in range(len(turns))]
    for former, later in pairwise(turns):
        calls = [block["id"] for block in former["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in later["content"] if block["type"] == "tool_result"]
        assert calls == results


@settings(max_examples=200)
@given(st.lists(steps, min_size=5, max_size=60))
def test_whatever_happens_meanwhile_a_run_is_shown_its_own_messages_last_and_no_other_s(
    drawn: list[tuple[Any, ...]],
) -> None:
    story = Story(native=True, total=100_000)
    asked: dict[int, str] = {}  # messages, by the run that answers them
    for each in drawn:
        before = len(story.prompts)
        now, waiting = story.now, {seq for _, triggers in story.queue[1:] for seq in triggers}
        happens(story, *each)
        for run, prompt, _ in story.prompts[before:]:
            assert now is not None
            texts = "".join(message.content for message in prompt.messages)
            assert not any(f"<{seq}>" in texts for seq in waiting), "another run answers it"
            last = [message for message in prompt.messages if message.role == "user"][-1]
            assert all(f"<{seq}>" in last.content for seq in now[1])
            asked |= dict.fromkeys(now[1], run)
    assert all(run.startswith("run-") for run in asked.values())
