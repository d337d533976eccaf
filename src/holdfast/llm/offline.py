"""The offline model: it needs no key, because it is no language model, and it says so.

It sees only the request, and always gives the same answer to the same request:

- It calls a tool that fits the last message (`holdfast.llm.tool_matching`). It asks the user if the message does not
  say enough, or if the tool may change something and an argument would be a guess.
- If no tool fits, it loads a skill that the message refers to.
- It reports the results of tools.
- It acknowledges the facts about the user that the turn keeps.
- It lists its tools and skills when the user asks what it can do.
- It cites memories, notes, loaded skills and earlier statements of the user that share words with the question. It does
  not cite questions or its own words.
- Otherwise it says that it does not know.

Memories and notes are parts of the system message, between the tags `<memories>` and `<notes>`. A memory is a line that
begins with "- ", and can start with its date and author.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from holdfast.core.sentences import sentences
from holdfast.core.text import render
from holdfast.llm.language_rules import is_chinese, swap_person, verbs, words
from holdfast.llm.model import CallPiece, ChatMessage, ModelRequest, Piece, Stop, TextPiece, ToolCall, ToolSpec
from holdfast.llm.tool_matching import READ, MissingArguments, ToolMatch, fitting, lacking, parameter
from holdfast.llm.user_facts import lasting_part

CITED = 3
USE_SKILL = "use_skill"
LOADING = (USE_SKILL, "search_skills")
REMEMBER = "remember"  # with this tool, the agent has a memory: the turn keeps what users say about themselves
REMEMBERED = "Remembered: "  # the start of that tool's result
MEMORY = (REMEMBER, "recall", "manage_long_term_memory")
LINE = 100  # characters of a description in a list
SHOWN = 4000  # characters of a tool's result

_PART = re.compile(r"<(memories|notes)>\n(.*?)\n</\1>", re.DOTALL)  # their format in a prompt
_MEMORY = re.compile(r"- (?:(\d{4}-\d\d-\d\d(?:, [^:]{1,100})?): )?(.+)")
_SKILLS = re.compile(r"^## Skills\n[^\n]*\n((?:- [^\n]*\n?)+)", re.MULTILINE)  # the format of the list in a prompt
_LINE = re.compile(r"^- ([^:\n]+)(?:: (.*))?$", re.MULTILINE)
_LOADED = re.compile(r"^## Skill: (.+)$", re.MULTILINE)
_INSTRUCTIONS = re.compile(r"^## Skill: (.+)\n((?:(?!^## |^<).*\n?)*)", re.MULTILINE)
_ABILITIES = re.compile(
    r"[\s/]*(?:(?:please\s+)?help(?:\s+me)?"
    r"|what\s+(?:else\s+)?(?:can|could|do)\s+(?:you|i)\s+(?:do|ask(?:\s+you)?)(?:\s+(?:for\s+me|here|with\s+you))?"
    r"|what\s+are\s+you\s+able\s+to\s+do|how\s+(?:can|could)\s+you\s+help(?:\s+me)?"
    r"|(?:what|which)\s+(?:tools|skills)(?:\s+and\s+(?:tools|skills))?(?:\s+(?:do\s+you\s+have|are\s+there|can\s+you\s+use))?"
    r"|(?:list|show)\s+(?:me\s+)?(?:all\s+)?(?:your\s+|the\s+)?(?:tools|skills|abilities)"
    r"|(?:请问)?你(?:都|还)?(?:能|会|可以)(?:做|干|帮我做)?(?:些)?什么|帮助|(?:你)?有(?:哪些|什么)(?:工具|技能|功能))[\s?!.。？！]*",  # noqa: RUF001
    re.IGNORECASE,
)
_FIRST = re.compile(r".*?[.!?\u3002\uff01\uff1f](?=\s|$|[\u4e00-\u9fff])|.+")
_PIECE = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of the offline model in one language."""

    unknown: str
    itself: str
    remembers: str
    noted: str
    skilled: str
    said: str
    gave: str
    nothing: str
    cut: str
    kept: str
    heard: str
    tools: str
    skills: str
    memory: str
    without: str
    missing: str
    confirm: str
    aside: str
    colon: str


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
    kept="Thank you. I will remember this: {}",
    heard="Thank you. I keep no memories here, and know it in this conversation only: {}",
    tools="I can use these tools:",
    skills="I can load these skills:",
    memory="I remember what you tell me about yourself, and cite it when you ask.",
    without="I have no tools and no skills here.",
    missing="To use {} I need to know {}. Say it like this: {}",
    confirm="{} may change something, and I am not sure what you mean. To have it done, say: {}",
    aside=" ({})",
    colon=": ",
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
    kept="好的，我会记住：{}",  # noqa: RUF001
    heard="好的。我在这里不保存记忆，只在这次对话中知道：{}",  # noqa: RUF001
    tools="我可以使用这些工具：",  # noqa: RUF001
    skills="我可以加载这些技能：",  # noqa: RUF001
    memory="你告诉我的关于你自己的事，我会记住，你问起时我会引用。",  # noqa: RUF001
    without="我在这里没有工具，也没有技能。",  # noqa: RUF001
    missing="要使用 {}，我需要知道 {}。请这样说：{}",  # noqa: RUF001
    confirm="{} 可能会改变一些东西，而我不确定你的意思。如果要执行，请说：{}",  # noqa: RUF001
    aside="（{}）",  # noqa: RUF001
    colon="：",  # noqa: RUF001
)


QUESTIONS = ("?", "\uff1f")
OWN = tuple(
    phrase.partition("{")[0].strip()
    for phrases in (ENGLISH, CHINESE)
    for phrase in (
        phrases.unknown, phrases.itself, phrases.remembers, phrases.noted, phrases.kept, phrases.heard, phrases.tools,
        phrases.skills, phrases.memory, phrases.without,
    )
)  # fmt: skip


class OfflineModel:
    """Answers without a language model."""

    name = "offline"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Stream the answer."""
        asked, turn = _turn(request.messages)
        used = {message.name for message in turn if message.role == "tool"}
        calls = _calls(request, asked, may_load=not used) if used <= {USE_SKILL} else []
        for call in calls:
            yield CallPiece(call)
        if not calls:
            for piece in _PIECE.findall(_answer(request, asked, turn)):
                yield TextPiece(piece)
        yield Stop("tools" if calls else "end", self.name)


def _answer(request: ModelRequest, asked: str, turn: Sequence[ChatMessage]) -> str:
    """Return the text of an answer that calls no tool."""
    phrases = CHINESE if is_chinese(asked) else ENGLISH
    tools = _callable(request)
    told, kept = _tool_results(turn, phrases), _acknowledge(request, asked, phrases)
    if told or (kept and not any(mark in asked for mark in QUESTIONS)):
        return "\n".join(filter(None, [told, kept]))
    if _ABILITIES.fullmatch(asked):
        return _abilities(request, phrases)
    said = (
        _ask_back(asked, tools, phrases)
        or _name_missing(lacking(asked, tools, ordered=True), phrases)
        or _cited(request.messages, asked, phrases)
        or _name_missing(lacking(asked, tools, ordered=False), phrases)
    )
    return "\n".join(filter(None, [said, kept])) or _ignorant(asked, phrases)


def _turn(messages: Sequence[ChatMessage]) -> tuple[str, Sequence[ChatMessage]]:
    """Return the user's last message, up to `READ` characters, and the messages after it."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            return messages[place].content[:READ], messages[place + 1 :]
    return "", messages


def _callable(request: ModelRequest) -> list[ToolSpec]:
    return [tool for tool in request.tools if tool.name not in LOADING]


def _calls(request: ModelRequest, asked: str, *, may_load: bool) -> list[ToolCall]:
    if _ABILITIES.fullmatch(asked):
        return []
    fit = fitting(asked, _callable(request))
    place = len(request.messages)
    if fit is not None and fit.tool.name == REMEMBER and lasting_part(asked):
        return []  # the turn keeps it
    if fit is not None and fit.guessed and lacking(asked, _callable(request), ordered=True):
        return []  # an incomplete command is not a question for another tool
    if fit is not None:
        calls = fit.arguments if fit.may_be_called else ()
        return [
            ToolCall(f"call_{place}_{number}", fit.tool.name, render(arguments).decode())
            for number, arguments in enumerate(calls)
        ]
    if lasting_part(asked) and not any(mark in asked for mark in QUESTIONS):
        return []
    may_load = may_load and any(tool.name == USE_SKILL for tool in request.tools)
    skill = _skill(request.messages, asked) if may_load else None
    return [] if skill is None else [ToolCall(f"call_{place}_0", USE_SKILL, render({"name": skill}).decode())]


def _acknowledge(request: ModelRequest, asked: str, phrases: Phrases) -> str:
    """Return an acknowledgement that repeats what the user said about themselves; empty if they said nothing."""
    fact = lasting_part(asked)
    if not fact:
        return ""
    has_memory = any(tool.name == REMEMBER for tool in request.tools)
    return (phrases.kept if has_memory else phrases.heard).format(swap_person(fact))


def _abilities(request: ModelRequest, phrases: Phrases) -> str:
    """Return what the agent can do, with a line for each tool and each skill."""
    tools = [tool for tool in _callable(request) if tool.name not in MEMORY]
    skills = _skills_in(request.messages)
    lines = [phrases.tools, *(_ability(tool.name, tool.description, phrases) for tool in tools)] if tools else []
    lines += [phrases.skills, *(_ability(name, about, phrases) for name, about in skills)] if skills else []
    lines += [] if lines else [phrases.without]
    has_memory = any(tool.name == REMEMBER for tool in request.tools)
    return "\n".join([*lines, *([phrases.memory] if has_memory else []), phrases.itself])


def _ability(name: str, about: str, phrases: Phrases) -> str:
    line = " ".join(about.split())
    first = _FIRST.match(line)
    text = first[0] if first else ""
    return f"- {name}" + (phrases.colon + (text if len(text) <= LINE else text[: LINE - 1] + "…") if text else "")


def _ask_back(asked: str, tools: Sequence[ToolSpec], phrases: Phrases) -> str:
    """If a tool may change something and an argument is a guess, return what the user has to say to confirm it."""
    fit = fitting(asked, tools)
    if fit is None or fit.may_be_called:
        return ""
    return phrases.confirm.format(fit.tool.name, _order(fit))


def _order(fit: ToolMatch) -> str:
    given = " ".join(f"{name}={render(value).decode()}" for name, value in fit.arguments[0].items())
    return f"{fit.tool.name} {given}"


def _name_missing(lack: MissingArguments | None, phrases: Phrases) -> str:
    """Return a request for the missing arguments of a tool."""
    if lack is None:
        return ""
    needed = [
        name + (phrases.aside.format(about.rstrip(".\u3002")) if (about := parameter(lack.tool, name)) else "")
        for name in lack.missing
    ]
    example = " ".join([lack.tool.name, *(f"{name}=…" for name in lack.missing)])
    return phrases.missing.format(lack.tool.name, ", ".join(needed), example)


def _skills_in(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Return the skills that the prompt lists, with their descriptions."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    return [line for part in _SKILLS.findall(system) for line in _LINE.findall(part)]


def _skill(messages: Sequence[ChatMessage], asked: str) -> str | None:
    """Return the skill that shares the most words with a message, of those that are listed and not loaded."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    loaded = set(_LOADED.findall(system))
    question = words(asked)
    listed = _skills_in(messages)
    shared = {name: len(question & words(f"{name} {about}")) for name, about in listed if name not in loaded}
    best = max(shared, key=lambda name: shared[name], default=None)
    return best if best is not None and shared[best] else None


def _tool_results(turn: Sequence[ChatMessage], phrases: Phrases) -> str:
    """Return the results of tools in this turn, except those of loading a skill."""
    names = {call.id: call.name for message in turn for call in message.calls}
    lines: list[str] = []
    for message in turn:
        if message.role == "tool" and message.name != USE_SKILL:
            name = message.name or names.get(message.call_id or "") or "tool"
            given = message.content.strip()
            given = given if len(given) <= SHOWN else given[:SHOWN] + phrases.cut
            if name == REMEMBER and given.startswith(REMEMBERED):
                lines.append(phrases.kept.format(swap_person(given.removeprefix(REMEMBERED))))
                continue
            lines.append(phrases.gave.format(name, given) if given else phrases.nothing.format(name))
    return "\n".join(lines)


def _cited(messages: Sequence[ChatMessage], asked: str, phrases: Phrases) -> str:
    """Cite the statements that share words with the question, best first."""
    terms = words if words(asked) else verbs
    question = terms(asked)
    found: list[tuple[int, str]] = []
    for said, citation in _known(messages, phrases):
        shared = len(question & terms(said))
        if shared and said != asked.strip() and not said.endswith(QUESTIONS) and not said.startswith(OWN):
            found.append((shared, citation))
    found.sort(key=lambda item: -item[0])
    best = [citation for shared, citation in found if shared * 2 > found[0][0]]
    return "\n".join(best[:CITED])


def _ignorant(asked: str, phrases: Phrases) -> str:
    """Say that no answer is known, and what the offline model is. To a greeting, say only the latter."""
    return phrases.unknown + phrases.itself if words(asked) else phrases.itself


def _known(messages: Sequence[ChatMessage], phrases: Phrases) -> Iterator[tuple[str, str]]:
    """Yield statements and how to cite them: lines of memories, notes and skills, and earlier words of the user."""
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
    for sentence in sentences("\n".join(earlier)[-READ:]):
        yield sentence, phrases.said.format(sentence)
