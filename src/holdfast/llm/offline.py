"""The model that needs no key: no language model at all, and it says so.

It sees only the request, and answers the same request always with the same words. It calls a tool that fits the last
message (`holdfast.llm.fitting`), loads a skill that the message speaks of where no tool does, tells what tools gave,
cites memories, notes, loaded skills and what the user said before that share words with the question, and else says
that it does not know. Memories and notes are parts of the system's message, between the tags `<memories>` and
`<notes>`; a memory is a line that begins with "- ", and may lead with its date and author. Neither what was asked
before nor what it said itself answers anything.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from holdfast.core.text import render
from holdfast.llm.fitting import READ, fitting
from holdfast.llm.model import Call, ChatMessage, Piece, Request, Stop, Text, ToolCall
from holdfast.llm.wording import is_chinese, words

CITED = 3
USE_SKILL = "use_skill"
LOADING = (USE_SKILL, "search_skills")
SHOWN = 4000  # characters of what a tool gave

_PART = re.compile(r"<(memories|notes)>\n(.*?)\n</\1>", re.DOTALL)  # as agents are told what they know
_MEMORY = re.compile(r"- (?:(\d{4}-\d\d-\d\d(?:, [^:]{1,100})?): )?(.+)")
_SENTENCE = re.compile(r"[^.!?\n\u3002\uff01\uff1f]+[.!?\u3002\uff01\uff1f]*")
_SKILLS = re.compile(r"^## Skills\n[^\n]*\n((?:- [^\n]*\n?)+)", re.MULTILINE)  # as agents are told of them
_LINE = re.compile(r"^- ([^:\n]+)(?:: (.*))?$", re.MULTILINE)
_LOADED = re.compile(r"^## Skill: (.+)$", re.MULTILINE)
_INSTRUCTIONS = re.compile(r"^## Skill: (.+)\n((?:(?!^## |^<).*\n?)*)", re.MULTILINE)
_PIECE = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Phrases:
    """What it says beside what it cites."""

    unknown: str
    itself: str
    remembers: str
    noted: str
    skilled: str
    said: str
    gave: str
    nothing: str
    cut: str


ENGLISH = Phrases(
    unknown="I do not know: no tool, memory or note answers this. ",
    itself=(
        "I am the offline model, and no language model: I can use tools, and cite memories and notes. For one that can "
        "talk, set HOLDFAST_LLM__MODEL, for example to openai:NAME with OPENAI_API_KEY, anthropic:NAME with "
        "ANTHROPIC_API_KEY, or ollama:NAME."
    ),
    remembers="I remember: {}",
    noted="My notes say: {}",
    skilled="The skill {} says: {}",
    said="You said: {}",
    gave="{} gave: {}",
    nothing="{} gave nothing.",
    cut="… (there is more)",
)
CHINESE = Phrases(
    unknown="我不知道：没有工具、记忆或笔记能回答这个问题。",  # noqa: RUF001
    itself=(
        "我是离线模型，不是语言模型：我可以使用工具，也可以引用记忆和笔记。想要会交谈的模型，"  # noqa: RUF001
        "请设置 HOLDFAST_LLM__MODEL，例如 openai:NAME（并设置 OPENAI_API_KEY）、"  # noqa: RUF001
        "anthropic:NAME（并设置 ANTHROPIC_API_KEY）或 ollama:NAME。"  # noqa: RUF001
    ),
    remembers="我记得：{}",  # noqa: RUF001
    noted="我的笔记里写着：{}",  # noqa: RUF001
    skilled="技能 {} 说：{}",  # noqa: RUF001
    said="你说过：{}",  # noqa: RUF001
    gave="{} 的结果：{}",  # noqa: RUF001
    nothing="{} 没有给出结果。",
    cut="……（还有更多）",  # noqa: RUF001
)


QUESTIONS = ("?", "\uff1f")
OWN = tuple(
    phrase.partition("{")[0].strip()
    for phrases in (ENGLISH, CHINESE)
    for phrase in (phrases.unknown, phrases.itself, phrases.remembers, phrases.noted)
)


class OfflineModel:
    """Answers without a language model."""

    name = "offline"

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        """The answer, piece by piece."""
        asked, turn = _turn(request.messages)
        phrases = CHINESE if is_chinese(asked) else ENGLISH
        used = {message.name for message in turn if message.role == "tool"}
        calls = _calls(request, asked, may_load=not used) if used <= {USE_SKILL} else []
        for call in calls:
            yield Call(call)
        if not calls:
            text = _told(turn, phrases) or _cited(request.messages, asked, phrases) or _ignorant(asked, phrases)
            for piece in _PIECE.findall(text):
                yield Text(piece)
        yield Stop("tools" if calls else "end", self.name)


def _turn(messages: Sequence[ChatMessage]) -> tuple[str, Sequence[ChatMessage]]:
    """What the user said last, as far as it is read, and what came after it."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            return messages[place].content[:READ], messages[place + 1 :]
    return "", messages


def _calls(request: Request, asked: str, *, may_load: bool) -> list[ToolCall]:
    fit = fitting(asked, [tool for tool in request.tools if tool.name not in LOADING])
    place = len(request.messages)
    if fit is not None:
        return [
            ToolCall(f"call_{place}_{number}", fit.tool.name, render(arguments).decode())
            for number, arguments in enumerate(fit.arguments)
        ]
    skill = _skill(request.messages, asked) if may_load else None
    return [] if skill is None else [ToolCall(f"call_{place}_0", USE_SKILL, render({"name": skill}).decode())]


def _skill(messages: Sequence[ChatMessage], asked: str) -> str | None:
    """The skill that a message speaks of, of those that are listed and not loaded: it shares the most words with it."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    loaded = set(_LOADED.findall(system))
    question = words(asked)
    listed = [line for part in _SKILLS.findall(system) for line in _LINE.findall(part)]
    shared = {name: len(question & words(f"{name} {about}")) for name, about in listed if name not in loaded}
    best = max(shared, key=lambda name: shared[name], default=None)
    return best if best is not None and shared[best] else None


def _told(turn: Sequence[ChatMessage], phrases: Phrases) -> str:
    """What the tools gave in this turn, but for what only loaded a skill."""
    names = {call.id: call.name for message in turn for call in message.calls}
    lines: list[str] = []
    for message in turn:
        if message.role == "tool" and message.name != USE_SKILL:
            name = message.name or names.get(message.call_id or "") or "tool"
            given = message.content.strip()
            given = given if len(given) <= SHOWN else given[:SHOWN] + phrases.cut
            lines.append(phrases.gave.format(name, given) if given else phrases.nothing.format(name))
    return "\n".join(lines)


def _cited(messages: Sequence[ChatMessage], asked: str, phrases: Phrases) -> str:
    """The memories and notes that share words with the question, the best first."""
    question = words(asked)
    found: list[tuple[int, str]] = []
    for said, citation in _known(messages, phrases):
        shared = len(question & words(said))
        if shared and said != asked.strip() and not said.endswith(QUESTIONS) and not said.startswith(OWN):
            found.append((shared, citation))
    found.sort(key=lambda item: -item[0])
    best = [citation for shared, citation in found if shared * 2 > found[0][0]]
    return "\n".join(best[:CITED])


def _ignorant(asked: str, phrases: Phrases) -> str:
    """To a greeting it says only what it is."""
    return phrases.unknown + phrases.itself if words(asked) else phrases.itself


def _known(messages: Sequence[ChatMessage], phrases: Phrases) -> Iterator[tuple[str, str]]:
    """What is remembered or noted, line by line, or was said before, and how to cite it."""
    parts = [part for message in messages if message.role == "system" for part in _PART.finditer(message.content)]
    for kind, part in (match.groups() for match in parts):
        for line in map(str.strip, part.splitlines()):
            if kind == "notes" and line and not line.startswith("#"):
                yield line.removeprefix("- "), phrases.noted.format(line.removeprefix("- "))
            elif kind == "memories" and (memory := _MEMORY.fullmatch(line)):
                source, said = memory.groups()
                yield said, phrases.remembers.format(f"{said} ({source})" if source else said)
    for skill, instructions in (match for message in messages for match in _INSTRUCTIONS.findall(message.content)):
        for line in map(str.strip, instructions.splitlines()):
            if line and not line.startswith("#"):
                yield line, phrases.skilled.format(skill, line)
    *earlier, _ = [message.content for message in messages if message.role == "user"] or [""]
    for sentence in map(str.strip, _SENTENCE.findall("\n".join(earlier)[-READ:])):
        yield sentence, phrases.said.format(sentence)
