"""Sections of Markdown: a header and the text below it, up to the next header of the same or a higher level.

CommonMark defines what a header is. A header inside a quotation or a list is part of it and starts no section.
An edit does not change the text outside of the section, including its line ends, and headers there remain headers.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_LISTED = 50  # headers in an error, at most

_LINE_END = re.compile(r"\r\n|\r|\n")
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """A section: its header, the line of the header (from one), and the offsets of its start, body and end."""

    level: int
    title: str
    line: int
    start: int
    body: int
    end: int

    @property
    def header(self) -> str:
        """The header, with one `#` per level."""
        return f"{'#' * self.level} {self.title}".rstrip()


def sections(text: str) -> list[MarkdownSection]:
    """Return all sections, in the order of the text. A section includes its subsections."""
    lines = [0, *(found.end() for found in _LINE_END.finditer(text)), len(text)]
    tokens = _parser().parse(_LINE_END.sub("\n", text))
    found: list[MarkdownSection] = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            first, after = token.map
            title = " ".join(inline.content.split("\n")).strip()  # a setext header can have several lines
            found.append(MarkdownSection(int(token.tag[1]), title, first + 1, lines[first], lines[after], len(text)))
    return _with_ends(found)


def find(text: str, header: str) -> MarkdownSection:
    """Return the only section with this header, given with or without its #s. Prefers the exact case."""
    level, title = _parse_header(header)
    known = sections(text)
    candidates = [section for section in known if level in (None, section.level)]
    matches = [section for section in candidates if section.title == title]
    matches = matches or [section for section in candidates if section.title.casefold() == title.casefold()]
    if not matches:
        raise NotFound(
            f"there is no header {header.strip()[:80]!r}",
            why=f"the headers are {_list_items([section.header for section in known])}"
            if known
            else "there are no headers",
            next="Use one of these headers as written." if known else "Append the section with its header.",
            headers=[section.header for section in known[:MAX_LISTED]],
        )
    if len(matches) > 1:
        levels_differ = len({section.level for section in matches}) == len(matches)
        raise InvalidInput(
            f"{len(matches)} sections have the header {title[:80]!r}",
            why=_list_items([f"line {section.line}: {section.header}" for section in matches]),
            next="Include the leading #s of the one that you mean."
            if levels_differ
            else "Overwrite the whole text instead.",
            lines=[section.line for section in matches[:MAX_LISTED]],
        )
    return matches[0]


def delete_section(text: str, header: str) -> str:
    """Return the text without the section of this header and its subsections."""
    section = find(text, header)
    before, after = text[: section.start], text[section.end :]
    edited = _with_blank_line(before, _line_end(text)) + after if after else before
    return _check_edit(text, section, edited, next="Overwrite the whole text instead.")


def replace_section(text: str, header: str, content: str) -> str:
    """Return the text with `content` in place of the section's body and its subsections.

    The header stays, unless the content begins with the same one: then the content's header replaces it.
    """
    section = find(text, header)
    line_end = _line_end(text)
    before, after = text[: section.start], text[section.end :]
    content = _from_first_line(content)
    if _begins_with(content, section):
        before, edited = _with_blank_line(before, line_end), content
    else:
        edited = text[section.start : section.body].rstrip("\r\n")
        if content:
            gap = 2 if text[section.body : section.end].startswith(("\r", "\n")) else 1
            edited += gap * line_end + content
    if after:
        edited = edited.rstrip(_SPACE) + 2 * line_end + after
    elif text.endswith(("\r", "\n")) and not edited.endswith(("\r", "\n")):
        edited += line_end
    return _check_edit(text, section, before + edited, next="Close every code fence and comment in the content.")


def join_texts(first: str, second: str) -> str:
    """Join two texts with one blank line between them. A blank text adds nothing."""
    if not first.strip(_SPACE):
        return second
    if not second.strip(_SPACE):
        return first
    return first.rstrip(_SPACE) + 2 * _line_end(first + second) + _from_first_line(second)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # imported at the first use: loading it takes longer than most commands run

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["block"])  # no inline markup: the text of a header is used as written
    return parser


def _with_ends(found: list[MarkdownSection]) -> list[MarkdownSection]:
    ended: list[MarkdownSection] = []
    following: list[MarkdownSection] = []  # the next header of each level, the highest level first
    for section in reversed(found):
        while following and following[-1].level > section.level:
            following.pop()
        end = following[-1].start if following else section.end
        following.append(section)
        ended.append(MarkdownSection(section.level, section.title, section.line, section.start, section.body, end))
    return ended[::-1]


def _parse_header(header: str) -> tuple[int | None, str]:
    title = header.strip()
    if not title:
        raise InvalidInput("the header is empty", next="Pass the header of a section, such as `## Tasks`.")
    found = sections(title)
    if len(found) == 1 and (found[0].start, found[0].body) == (0, len(title)):
        return found[0].level, found[0].title
    return None, title


def _begins_with(content: str, section: MarkdownSection) -> bool:
    first = next(iter(sections(content)), None)
    return (
        first is not None
        and first.start == 0
        and first.level == section.level
        and first.title.casefold() == section.title.casefold()
    )


def _check_edit(text: str, section: MarkdownSection, edited: str, *, next: str) -> str:
    """Raise InvalidInput if an edit turns a header outside of the section into something else, such as code."""
    around = sections(text)
    before = [other.header for other in around if other.start < section.start]
    after = [other.header for other in around if other.start >= section.end]
    now = [other.header for other in sections(edited)]
    rest = now[len(before) :]
    if now[: len(before)] != before or rest[max(0, len(rest) - len(after)) :] != after:
        lost = (after or before[::-1])[0]
        raise InvalidInput(
            "the edit would change text outside the section",
            why=f"{lost[:80]!r} would no longer be a header",
            next=next,
        )
    return edited


def _line_end(text: str) -> str:
    """Return the line end that a text uses."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


def _with_blank_line(before: str, line_end: str) -> str:
    """Return the text with a blank line at its end, so that the next text does not join its last paragraph."""
    last = _LINE_END.split(before)[-2] if before else ""  # it ends with a line end: a section begins with a line
    return before + line_end if last.strip(_SPACE) else before


def _from_first_line(text: str) -> str:
    """Return the text from its first line that is not blank."""
    blank = len(text) - len(text.lstrip(_SPACE))
    return text[max(text.rfind("\n", 0, blank), text.rfind("\r", 0, blank)) + 1 :] if blank < len(text) else ""


def _list_items(items: list[str]) -> str:
    more = len(items) - MAX_LISTED
    return ", ".join(items[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
