"""XML from strangers: no entities, no network, no document types, a limited depth, in constant memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from holdfast.knowledge.parsing.archive import Archive, PartStream
from holdfast.knowledge.parsing.errors import ParseError

etree: Any = import_module("lxml.etree")  # it has no types

OPTIONS: Mapping[str, bool] = {
    "resolve_entities": False,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "no_network": True,
    "huge_tree": False,  # a depth of 256, texts of 10 MB, and no entity that multiplies
    "remove_comments": True,
    "remove_pis": True,
}
READ_BYTES = 256 * 1024


class Element(Protocol):
    """What we use of an element of lxml."""

    tag: str
    text: str | None
    tail: str | None
    attrib: Mapping[str, str]

    def get(self, key: str) -> str | None: ...
    def __iter__(self) -> Iterator["Element"]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> "Element": ...
    def iter(self, *tags: str) -> Iterator["Element"]: ...
    def find(self, path: str) -> "Element | None": ...
    def iterfind(self, path: str) -> Iterator["Element"]: ...
    def itertext(self) -> Iterator[str]: ...
    def getparent(self) -> "Element | None": ...
    def getprevious(self) -> "Element | None": ...
    def remove(self, child: "Element") -> None: ...
    def clear(self) -> None: ...


# Prefixes by what a namespace contains, so that the strict form of Office files reads like the transitional one.
PREFIXES = (
    (re.compile(r"wordprocessingml(/\d+)?/main$"), "w"),
    (re.compile(r"drawingml(/\d+)?/main$"), "a"),
    (re.compile(r"spreadsheetml(/\d+)?/main$"), "s"),
    (re.compile(r"presentationml(/\d+)?/main$"), "p"),
    (re.compile(r"drawingml(/\d+)?/chart$"), "c"),
    (re.compile(r"drawingml(/\d+)?/diagram$"), "dgm"),
    (re.compile(r"drawingml(/\d+)?/spreadsheetDrawing$"), "xdr"),
    (re.compile(r"drawingml(/\d+)?/wordprocessingDrawing$"), "wp"),
    (re.compile(r"wordprocessingShape$"), "wps"),
    (re.compile(r"officeDocument(/\d+)?/math$"), "m"),
    (re.compile(r"markup-compatibility/\d+$"), "mc"),
    (re.compile(r"office/word/2010/wordml$"), "w14"),
    (re.compile(r":vml$"), "v"),
)


class _Names(dict[object, str]):
    """The short names of tags: `w:p`."""

    def __missing__(self, tag: object) -> str:
        name = _short(tag) if isinstance(tag, str) else ""  # a comment or an entity has no name
        if len(self) < 10_000:
            self[tag] = name
        return name


def _short(tag: str) -> str:
    space, _, local = tag.rpartition("}")
    prefix = next((prefix for pattern, prefix in PREFIXES if pattern.search(space)), "")
    return f"{prefix}:{local}" if prefix else local


NAMES = _Names()


def own(element: Element, key: str) -> str | None:
    """An attribute in the namespace of its element, as Word writes them all."""
    tag = element.tag
    return element.get(f"{tag[: tag.rfind('}') + 1]}{key}")


def whole_number(text: str | None, default: int) -> int:
    """A number that is not negative, from an attribute; the default for anything else, and for what is absurd."""
    text = text.strip() if text else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def reference(element: Element, key: str = "id") -> str | None:
    """The id of a relationship that an element names."""
    end = f"relationships}}{key}"
    return next((value for name, value in element.attrib.items() if name.endswith(end)), None)


def child(element: Element | None, *names: str) -> Element | None:
    """The first child of a name, and its first child of the next name, and so on."""
    for name in names:
        if element is None:
            return None
        for each in element:
            if NAMES[each.tag] == name:
                element = each
                break
        else:
            return None
    return element


def children(element: Element | None, name: str) -> Iterator[Element]:
    """The children of a name."""
    return (each for each in (element if element is not None else ()) if NAMES[each.tag] == name)


def descendants(element: Element, name: str) -> Iterator[Element]:
    """All elements of a name, in order."""
    local = name.rpartition(":")[2]
    return (each for each in element.iter(f"{{*}}{local}") if NAMES[each.tag] == name)


def tree(archive: Archive, part: str, *, doctype: bool = False, content: bytes | None = None) -> Element:
    """A part as a tree. It must not be large. `content`: of the part, if it was read."""
    content = archive.read(part) if content is None else content
    try:
        root: Element = etree.fromstring(content, etree.XMLParser(**OPTIONS))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _unreadable(archive, part, error) from error
    if not doctype:
        _refuse_doctype(archive, part, root)
    return root


def events(
    archive: Archive, stream: PartStream, part: str, tags: Sequence[str], kinds: Sequence[str] = ("end",)
) -> Iterator[tuple[str, Element]]:
    """The elements of a part as they begin and end. The caller removes what it has read."""
    parser = etree.XMLPullParser(events=("start", *kinds), tag=[f"{{*}}{tag}" for tag in tags], **OPTIONS)
    root: Element | None = None
    starts = "start" in kinds
    try:
        while data := stream.read(READ_BYTES):
            parser.feed(data)
            for kind, element in parser.read_events():
                if root is None:
                    root = element
                    _refuse_doctype(archive, part, element)
                if starts or kind != "start":
                    yield kind, element
        whole: Element = parser.close()
        if root is None:
            _refuse_doctype(archive, part, whole)
    except etree.XMLSyntaxError as error:
        raise _unreadable(archive, part, error) from error


def forget(element: Element) -> None:
    """Free an element that was read, and its siblings before it."""
    element.clear()
    parent = element.getparent()
    if parent is None:
        return
    while (before := element.getprevious()) is not None:
        parent.remove(before)


def _refuse_doctype(archive: Archive, part: str, element: Element) -> None:
    whole: Any = element
    info = whole.getroottree().docinfo
    if info.internalDTD is not None or info.doctype:
        raise archive.damaged(f"its part `{part}` declares a document type, which may define entities")


def _unreadable(archive: Archive, part: str, error: Exception) -> ParseError:
    reason = str(error)
    if "depth" in reason.lower():
        return too_deep(archive)
    if "amplification" in reason or "entity" in reason.lower():
        return archive.damaged(f"its part `{part}` defines entities")
    if "huge" in reason.lower():
        return archive.too_large(f"its part `{part}` has a text of more than 10 MB")
    return archive.damaged(f"its part `{part}` is not well-formed XML ({reason})")


def too_deep(archive: Archive) -> ParseError:
    """The error of a file whose elements are nested too deep."""
    return ParseError(
        "the file is not read",
        code="too_deep",
        why=f"its elements are nested deeper than {archive.limits.depth} levels",
        next="Add a file with a simpler structure.",
    )
