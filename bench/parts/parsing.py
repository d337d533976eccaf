"""Files with the Markdown that they should become, and how much of it a parser finds."""

import html
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from holdfast.knowledge.parsing import Unit

Parse = Callable[[Path], Iterator[Unit]]

PARSERS = {
    "docx": "docx",
    "xlsx": "xlsx",
    "pptx": "pptx",
    "epub": "epub",
    "html": "html",
    "md": "markdown",
    "pdf": "pdf",
}
ENDINGS = {"xlsx": (".xlsx", ".xlsm"), "html": (".html", ".htm", ".xhtml")}
WORD = re.compile(r"[^\W_]+")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
HEADING = re.compile(r"^#{1,6}\s+\S", re.MULTILINE)
RULE = re.compile(r"^\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?$")
FENCE = re.compile(r"^(```|~~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A file and its expected Markdown."""

    source: Path
    expected: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How a file was read: tokens, headings and tables that are expected and found, and CPU seconds."""

    name: str
    expected: int = 0
    found: int = 0
    shared: int = 0
    headings: tuple[int, int] = (0, 0)  # found, expected
    tables: tuple[int, int] = (0, 0)
    cpu: float = 0.0
    error: str | None = None

    @property
    def recall(self) -> float:
        """The share of the expected tokens that were found."""
        return self.shared / self.expected if self.expected else 1.0

    @property
    def precision(self) -> float:
        """The share of the found tokens that were expected."""
        return self.shared / self.found if self.found else 1.0


def parser(form: str) -> Parse | None:
    """The parser of a format, if there is one."""
    name = f"holdfast.knowledge.parsing.{PARSERS[form]}"
    return import_module(name).parse if find_spec(name) is not None else None


def samples(data: Path, form: str) -> list[Sample]:
    """The files of a format whose expected Markdown lies beside them, by name."""
    expected = {path.name.removesuffix(".md"): path for path in sorted((data / form / "groundtruth").rglob("*.md"))}
    endings = ENDINGS.get(form, (f".{form}",))
    sources = (path for path in sorted((data / form / "sources").iterdir()) if path.suffix in endings)
    found = ((source, expected.get(source.name) or expected.get(source.stem)) for source in sources)
    return [Sample(source, path.read_text()) for source, path in found if path is not None]


def mark(sample: Sample, parse: Parse) -> Mark:
    """Parse a file and compare."""
    begin = time.process_time()
    try:
        text = "\n\n".join(unit.text for unit in parse(sample.source))
    except Exception as error:  # noqa: BLE001  what a parser cannot read counts as empty
        return Mark(sample.source.name, expected=len(tokens(sample.expected)), error=f"{type(error).__name__}: {error}")
    cpu = time.process_time() - begin
    expected, found = Counter(tokens(sample.expected)), Counter(tokens(text))
    return Mark(
        sample.source.name,
        expected.total(),
        found.total(),
        (expected & found).total(),
        (headings(text), headings(sample.expected)),
        (tables(text), tables(sample.expected)),
        cpu,
    )


def tokens(markdown: str) -> list[str]:
    """The words and numbers that a reader sees, without addresses, tags and placeholders; Chinese by character."""
    plain = html.unescape(TAG.sub(" ", LINK.sub(lambda match: match[2], COMMENT.sub(" ", markdown))))
    plain = re.sub(r"\\([_*#|$\\])", r"\1", plain)
    return [part for word in WORD.findall(plain.casefold()) for part in _split(word)]


def headings(markdown: str) -> int:
    """How many headings there are, outside of code."""
    return len(HEADING.findall(FENCE.sub("", markdown)))


def tables(markdown: str) -> int:
    """How many tables with pipes there are."""
    return sum(1 for line in FENCE.sub("", markdown).splitlines() if "|" in line and RULE.match(line.strip()))


def totals(marks: list[Mark]) -> Mapping[str, float | int]:
    """The figures of a format: recall and precision as means of its files, and over all their tokens."""
    count = max(len(marks), 1)
    shared = sum(each.shared for each in marks)
    return {
        "files": len(marks),
        "failed": sum(each.error is not None for each in marks),
        "recall": sum(each.recall for each in marks) / count,
        "precision": sum(each.precision for each in marks) / count,
        "recall_of_all": shared / max(sum(each.expected for each in marks), 1),
        "precision_of_all": shared / max(sum(each.found for each in marks), 1),
        "headings": sum(each.headings[0] for each in marks),
        "headings_expected": sum(each.headings[1] for each in marks),
        "tables": sum(each.tables[0] for each in marks),
        "tables_expected": sum(each.tables[1] for each in marks),
        "cpu_ms": 1000 * sum(each.cpu for each in marks) / count,
    }


def _split(word: str) -> Iterator[str]:
    if word.isascii():
        yield word
        return
    run = ""
    for letter in word:
        if "\u2e80" <= letter <= "\u9fff" or "\uf900" <= letter <= "\ufaff" or "\uac00" <= letter <= "\ud7af":
            if run:
                yield run
            yield letter
            run = ""
        else:
            run += letter
    if run:
        yield run
