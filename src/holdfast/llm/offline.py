"""The offline model: it needs no key, because it is no language model, and it says so.

It sees only the request, and always gives the same answer to the same request:

- It calls a tool that fits the last message (`holdfast.llm.tool_matching`). It asks the user if the message does not
  say enough, or if the tool may change something and an argument would be a guess.
- If no tool fits, it loads a skill that the message refers to.
- It reports the results of tools.
- It acknowledges the facts about the user that the turn keeps.
- It lists its tools and skills when the user asks what it can do.
- It cites documents, memories, notes, loaded skills and earlier statements of the user that share words with the
  question. It does not cite questions or its own words.
- Otherwise it says that it does not know.

Memories and notes are parts of the system message, between the tags `<memories>` and `<notes>`. A memory is a line that
begins with "- ", and can start with its date and author. Excerpts of documents are there, too, and in results of tools,
between tags with their source: `<document source="handbook.pdf, p. 3">`.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from holdfast.core.sentences import sentences
from holdfast.core.text import render
from holdfast.llm.language_rules import is_chinese, swap_person, verbs, words
from holdfast.llm.model import CallPiece, ChatMessage, ModelRequest, Piece, Stop, TextPiece, ToolCall, ToolSpec
from holdfast.llm.tool_matching import READ, MissingArguments, ToolMatch, find_missing_arguments, match_tool, parameter
from holdfast.llm.user_facts import extract_facts

CITED = 3
USE_SKILL = "use_skill"
LOADING = (USE_SKILL, "search_skills")
REMEMBER = "remember"  # with this tool, the agent has a memory: the turn keeps what users say about themselves
REMEMBERED = "Remembered: "  # the start of that tool's result
MEMORY = (REMEMBER, "recall", "manage_long_term_memory")
SEARCH = "search_knowledge"
KNOWLEDGE = (SEARCH, "read_document", "list_documents")
WORDS_FOR_SHARE = 3  # a sentence of a document is cited if it shares one of so many words of the question
LINE = 100  # characters of a description in a list
SHOWN = 4000  # characters of a tool's result

_PART = re.compile(r"<(memories|notes)>\n(.*?)\n</\1>", re.DOTALL)  # their format in a prompt
_DOCUMENT = re.compile(r'<document source="([^"\n]*)">\n(.*?)\n</document>', re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s+(.+)")
_CHUNK = re.compile(r", chunk \d+.*", re.DOTALL)  # what a search adds to the source
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
    about_itself: str
    cite_memory: str
    cite_note: str
    cite_skill: str
    cite_user: str
    cite_document: str
    tool_result: str
    empty_result: str
    cut: str
    fact_stored: str
    fact_not_stored: str
    tools: str
    skills: str
    memory: str
    knowledge: str
    no_abilities: str
    missing_arguments: str
    confirm: str
    aside: str
    colon: str


ENGLISH = Phrases(
    unknown="I do not know: no tool, document, memory or note answers this. ",
    about_itself=(
        "I am the offline model, and no language model: I can use tools, and cite documents, memories and notes. For "
        "one that can talk, set HOLDFAST_LLM__MODEL, for example to openai:NAME with OPENAI_API_KEY, anthropic:NAME "
        "with ANTHROPIC_API_KEY, or ollama:NAME."
    ),
    cite_memory="I remember: {}",
    cite_note="My notes say: {}",
    cite_skill="The skill {} says: {}",
    cite_user="You said: {}",
    cite_document="{} [{}]",
    tool_result="{} gave: {}",
    empty_result="{} gave nothing.",
    cut="… (there is more)",
    fact_stored="Thank you. I will remember this: {}",
    fact_not_stored="Thank you. I keep no memories here, and know it in this conversation only: {}",
    tools="I can use these tools:",
    skills="I can load these skills:",
    memory="I remember what you tell me about yourself, and cite it when you ask.",
    knowledge="I cite the documents that were added with `holdfast knowledge add`.",
    no_abilities="I have no tools and no skills here.",
    missing_arguments="To use {} I need to know {}. Say it like this: {}",
    confirm="{} may change something, and I am not sure what you mean. To have it done, say: {}",
    aside=" ({})",
    colon=": ",
)
CHINESE = Phrases(
    unknown="我不知道：没有工具、文档、记忆或笔记能回答这个问题。",  # noqa: RUF001
    about_itself=(
        "我是离线模型，不是语言模型：我可以使用工具，也可以引用文档、记忆和笔记。想要会交谈的模型，"  # noqa: RUF001
        "请设置 HOLDFAST_LLM__MODEL，例如 openai:NAME（并设置 OPENAI_API_KEY）、"  # noqa: RUF001
        "anthropic:NAME（并设置 ANTHROPIC_API_KEY）或 ollama:NAME。"  # noqa: RUF001
    ),
    cite_memory="我记得：{}",  # noqa: RUF001
    cite_note="我的笔记里写着：{}",  # noqa: RUF001
    cite_skill="技能 {} 说：{}",  # noqa: RUF001
    cite_user="你说过：{}",  # noqa: RUF001
    cite_document="{} [{}]",
    tool_result="{} 的结果：{}",  # noqa: RUF001
    empty_result="{} 没有给出结果。",
    cut="……（还有更多）",  # noqa: RUF001
    fact_stored="好的，我会记住：{}",  # noqa: RUF001
    fact_not_stored="好的。我在这里不保存记忆，只在这次对话中知道：{}",  # noqa: RUF001
    tools="我可以使用这些工具：",  # noqa: RUF001
    skills="我可以加载这些技能：",  # noqa: RUF001
    memory="你告诉我的关于你自己的事，我会记住，你问起时我会引用。",  # noqa: RUF001
    knowledge="我会引用用 `holdfast knowledge add` 添加的文档。",
    no_abilities="我在这里没有工具，也没有技能。",  # noqa: RUF001
    missing_arguments="要使用 {}，我需要知道 {}。请这样说：{}",  # noqa: RUF001
    confirm="{} 可能会改变一些东西，而我不确定你的意思。如果要执行，请说：{}",  # noqa: RUF001
    aside="（{}）",  # noqa: RUF001
    colon="：",  # noqa: RUF001
)


QUESTIONS = ("?", "\uff1f")
OWN = tuple(
    phrase.partition("{")[0].strip()
    for phrases in (ENGLISH, CHINESE)
    for phrase in (
        phrases.unknown, phrases.about_itself, phrases.cite_memory, phrases.cite_note, phrases.fact_stored,
        phrases.fact_not_stored, phrases.tools, phrases.skills, phrases.memory, phrases.knowledge,
        phrases.no_abilities,
    )
)  # fmt: skip


class OfflineModel:
    """Answers without a language model."""

    name = "offline"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Stream the answer."""
        user_text, turn = _turn(request.messages)
        used = {message.name for message in turn if message.role == "tool"}
        calls = _calls(request, user_text, may_load=not used) if used <= {USE_SKILL} else []
        for call in calls:
            yield CallPiece(call)
        if not calls:
            for piece in _PIECE.findall(_answer(request, user_text, turn)):
                yield TextPiece(piece)
        yield Stop("tools" if calls else "end", self.name)


def _answer(request: ModelRequest, user_text: str, turn: Sequence[ChatMessage]) -> str:
    """Return the text of an answer that calls no tool."""
    phrases = CHINESE if is_chinese(user_text) else ENGLISH
    tools = [tool for tool in _callable_tools(request) if tool.name not in KNOWLEDGE]
    results, acknowledgement = _tool_results(turn, user_text, phrases), _acknowledge(request, user_text, phrases)
    if results or (acknowledgement and not any(mark in user_text for mark in QUESTIONS)):
        return "\n".join(filter(None, [results, acknowledgement]))
    if _ABILITIES.fullmatch(user_text):
        return _abilities(request, phrases)
    answer = (
        _ask_back(user_text, tools, phrases)
        or _name_missing(find_missing_arguments(user_text, tools, ordered=True), phrases)
        or _cite(request.messages, user_text, phrases)
        or _name_missing(find_missing_arguments(user_text, tools, ordered=False), phrases)
    )
    return "\n".join(filter(None, [answer, acknowledgement])) or _admit_ignorance(user_text, phrases)


def _turn(messages: Sequence[ChatMessage]) -> tuple[str, Sequence[ChatMessage]]:
    """Return the user's last message, up to `READ` characters, and the messages after it."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            return messages[place].content[:READ], messages[place + 1 :]
    return "", messages


def _callable_tools(request: ModelRequest) -> list[ToolSpec]:
    return [tool for tool in request.tools if tool.name not in LOADING]


def _calls(request: ModelRequest, user_text: str, *, may_load: bool) -> list[ToolCall]:
    if _ABILITIES.fullmatch(user_text):
        return []
    tools = _callable_tools(request)
    if _cite_documents(request.messages, user_text):  # the prompt has the answer already
        tools = [tool for tool in tools if tool.name not in KNOWLEDGE]
    fit = match_tool(user_text, tools)
    place = len(request.messages)
    if fit is not None and fit.tool.name == REMEMBER and extract_facts(user_text):
        return []  # the turn keeps it
    if fit is not None and fit.guessed and find_missing_arguments(user_text, tools, ordered=True):
        return []  # an incomplete command is not a question for another tool
    if fit is not None:
        calls = fit.arguments if fit.may_be_called else ()
        return [
            ToolCall(f"call_{place}_{number}", fit.tool.name, render(arguments).decode())
            for number, arguments in enumerate(calls)
        ]
    if extract_facts(user_text) and not any(mark in user_text for mark in QUESTIONS):
        return []
    may_load = may_load and any(tool.name == USE_SKILL for tool in request.tools)
    skill = _skill(request.messages, user_text) if may_load else None
    return [] if skill is None else [ToolCall(f"call_{place}_0", USE_SKILL, render({"name": skill}).decode())]


def _acknowledge(request: ModelRequest, user_text: str, phrases: Phrases) -> str:
    """Return an acknowledgement that repeats what the user said about themselves; empty if they said nothing."""
    fact = extract_facts(user_text)
    if not fact:
        return ""
    has_memory = any(tool.name == REMEMBER for tool in request.tools)
    return (phrases.fact_stored if has_memory else phrases.fact_not_stored).format(swap_person(fact))


def _abilities(request: ModelRequest, phrases: Phrases) -> str:
    """Return what the agent can do, with a line for each tool and each skill."""
    tools = [tool for tool in _callable_tools(request) if tool.name not in (*MEMORY, *KNOWLEDGE)]
    skills = _skills_in(request.messages)
    lines = [phrases.tools, *(_ability(tool.name, tool.description, phrases) for tool in tools)] if tools else []
    lines += [phrases.skills, *(_ability(name, about, phrases) for name, about in skills)] if skills else []
    lines += [] if lines else [phrases.no_abilities]
    names = {tool.name for tool in request.tools}
    lines += [phrases.memory] if REMEMBER in names else []
    lines += [phrases.knowledge] if SEARCH in names else []
    return "\n".join([*lines, phrases.about_itself])


def _ability(name: str, about: str, phrases: Phrases) -> str:
    line = " ".join(about.split())
    first = _FIRST.match(line)
    text = first[0] if first else ""
    return f"- {name}" + (phrases.colon + (text if len(text) <= LINE else text[: LINE - 1] + "…") if text else "")


def _ask_back(user_text: str, tools: Sequence[ToolSpec], phrases: Phrases) -> str:
    """If a tool may change something and an argument is a guess, return what the user has to say to confirm it."""
    fit = match_tool(user_text, tools)
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
    return phrases.missing_arguments.format(lack.tool.name, ", ".join(needed), example)


def _skills_in(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Return the skills that the prompt lists, with their descriptions."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    return [line for part in _SKILLS.findall(system) for line in _LINE.findall(part)]


def _skill(messages: Sequence[ChatMessage], user_text: str) -> str | None:
    """Return the skill that shares the most words with a message, of those that are listed and not loaded."""
    system = "\n".join(message.content for message in messages if message.role == "system")
    loaded = set(_LOADED.findall(system))
    question = words(user_text)
    listed = _skills_in(messages)
    shared = {name: len(question & words(f"{name} {about}")) for name, about in listed if name not in loaded}
    best = max(shared, key=lambda name: shared[name], default=None)
    return best if best is not None and shared[best] else None


def _tool_results(turn: Sequence[ChatMessage], user_text: str, phrases: Phrases) -> str:
    """Return the results of tools in this turn, except those of loading a skill."""
    names = {call.id: call.name for message in turn for call in message.calls}
    lines: list[str] = []
    for message in turn:
        if message.role == "tool" and message.name != USE_SKILL:
            name = message.name or names.get(message.call_id or "") or "tool"
            given = message.content.strip()
            if name == SEARCH and (cited := _cite_documents([message], user_text)):
                lines.append("\n".join(citation for _, citation in cited))
                continue
            given = _DOCUMENT.sub(lambda found: f"[{found[1]}]\n{found[2]}", given)
            given = given if len(given) <= SHOWN else given[:SHOWN] + phrases.cut
            if name == REMEMBER and given.startswith(REMEMBERED):
                lines.append(phrases.fact_stored.format(swap_person(given.removeprefix(REMEMBERED))))
                continue
            lines.append(phrases.tool_result.format(name, given) if given else phrases.empty_result.format(name))
    return "\n".join(lines)


def _cite(messages: Sequence[ChatMessage], user_text: str, phrases: Phrases) -> str:
    """Cite the statements that share words with the question, best first."""
    terms = words if words(user_text) else verbs
    question = terms(user_text)
    found: list[tuple[float, str]] = [*_cite_documents(messages, user_text)]
    for statement, citation in _statements(messages, phrases):
        shared = len(question & terms(statement))
        if (
            shared
            and statement != user_text.strip()
            and not statement.endswith(QUESTIONS)
            and not statement.startswith(OWN)
        ):
            found.append((shared, citation))
    return "\n".join(citation for _, citation in _best(found))


def _cite_documents(messages: Sequence[ChatMessage], user_text: str) -> list[tuple[float, str]]:
    """Cite the sentences of documents that share enough words with the question, best first, with their weight.

    The words of a sentence's heading count by half, and so do those of its source.
    """
    phrases = CHINESE if is_chinese(user_text) else ENGLISH
    question = words(user_text)
    found: list[tuple[float, str]] = []
    given = [message.content for message in messages if message.role in ("system", "tool")]
    for source, text in (match for content in given for match in _DOCUMENT.findall(content)):
        name = _CHUNK.sub("", source)
        for heading, sentence in _sentences_of(text):
            told = words(sentence)
            above = question & words(f"{heading} {source}") - told
            weight = len(question & told) + len(above) / 2
            meant = (question & told or len(above) > 1) and WORDS_FOR_SHARE * weight >= len(question)
            if meant and not sentence.endswith(QUESTIONS):
                found.append((weight, phrases.cite_document.format(sentence, name)))
    return _best(found)


def _sentences_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a document's text, each with its heading; of a row of a table, also the first row."""
    heading = first_row = ""
    for sentence in sentences(text):
        is_row = sentence.startswith("|")
        if found := _HEADING.fullmatch(sentence):
            heading = found[1]
        elif any(map(str.isalnum, sentence)):
            yield f"{heading} {first_row}" if is_row else heading, sentence
        first_row = (first_row or sentence) if is_row else ""


def _best(found: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the best citations: those with more than half of the highest weight."""
    found = [*dict.fromkeys(sorted(found, key=lambda item: -item[0]))]
    return [item for item in found if item[0] * 2 > found[0][0]][:CITED]


def _admit_ignorance(user_text: str, phrases: Phrases) -> str:
    """Say that no answer is known, and what the offline model is. To a greeting, say only the latter."""
    return phrases.unknown + phrases.about_itself if words(user_text) else phrases.about_itself


def _statements(messages: Sequence[ChatMessage], phrases: Phrases) -> Iterator[tuple[str, str]]:
    """Yield statements and how to cite them: lines of memories, notes and skills, and earlier words of the user."""
    parts = [part for message in messages if message.role == "system" for part in _PART.finditer(message.content)]
    for kind, part in (match.groups() for match in parts):
        for line in map(str.strip, part.splitlines()):
            if kind == "notes" and line and not line.startswith("#"):
                yield line.removeprefix("- "), phrases.cite_note.format(line.removeprefix("- "))
            elif kind == "memories" and (memory := _MEMORY.fullmatch(line)):
                source, statement = memory.groups()
                yield statement, phrases.cite_memory.format(f"{statement} ({source})" if source else statement)
    for skill, instructions in (match for message in messages for match in _INSTRUCTIONS.findall(message.content)):
        for line in map(str.strip, instructions.splitlines()):
            if line and not line.startswith("#"):
                yield line, phrases.cite_skill.format(skill, line)
    *earlier, _ = [message.content for message in messages if message.role == "user"] or [""]
    for sentence in sentences("\n".join(earlier)[-READ:]):
        yield sentence, phrases.cite_user.format(sentence)
