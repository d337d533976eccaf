"""Evaluation sets: banks of memories, and questions whose evidence is known.

LoCoMo: ten long chats of two, in English. MemDaily: short personal messages, in Chinese.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ADVERSARIAL = 5  # LoCoMo's category of questions that have no answer


@dataclass(frozen=True, slots=True)
class Memory:
    """One turn or message; `id` is what the evidence names."""

    id: str
    content: str
    at: datetime
    author: str | None = None
    conversation: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the ids of the memories that answer it."""

    text: str
    gold: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class Bank:
    """The memories of one owner, and the questions about them."""

    name: str
    memories: tuple[Memory, ...]
    questions: tuple[Question, ...]


def locomo(folder: Path) -> Iterator[Bank]:
    """The banks of LoCoMo: a turn with its speaker, and what its picture shows, is a memory."""
    for sample in json.loads((folder / "locomo10.json").read_text("utf-8")):
        memories = tuple(_turns(sample["conversation"]))
        ids = {memory.id for memory in memories}
        questions = (
            Question(asked["question"], frozenset(_ids(asked["evidence"])) & ids, str(asked["category"]))
            for asked in sample["qa"]
            if asked["category"] != ADVERSARIAL
        )
        yield Bank(sample["sample_id"], memories, tuple(question for question in questions if question.gold))


def memdaily(folder: Path) -> Iterator[Bank]:
    """The banks of MemDaily, in the order of its files."""
    for path in sorted(folder.glob("*.json")):
        for trajectory in json.loads(path.read_text("utf-8")):
            memories = tuple(
                Memory(str(message["mid"]), message["message"], _chinese_time(message["time"]))
                for message in trajectory["message_list"]
            )
            questions = tuple(
                Question(asked["question"], frozenset(map(str, asked["target_step_id"])), path.stem)
                for asked in trajectory["question_list"]
                if asked["target_step_id"]
            )
            yield Bank(f"{path.stem}-{trajectory['tid']}", memories, questions)


def _turns(conversation: Mapping[str, Any]) -> Iterator[Memory]:
    sessions = sorted(int(found[1]) for key in conversation if (found := re.fullmatch(r"session_(\d+)", key)))
    for session in sessions:
        said = _time(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
        for seq, turn in enumerate(conversation[f"session_{session}"], 1):
            caption = f" ({turn['blip_caption']})" if turn.get("blip_caption") else ""
            yield Memory(
                id=turn["dia_id"],
                content=f"{turn['speaker']}: {turn['text']}{caption}",
                at=said,
                author=turn["speaker"],
                conversation=f"session-{session}",
                seq=seq,
            )


def _ids(evidence: list[str]) -> Iterator[str]:
    """Some strings name several turns."""
    for names in evidence:
        yield from re.split(r"[;\s]+", names.strip())


def _chinese_time(text: str) -> datetime:
    """The time of 2024年04月01日 周一 08:30."""
    day, _, clock = text.split()
    return _time(f"{day} {clock}", "%Y年%m月%d日 %H:%M")


def _time(text: str, form: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)
