"""Electronic books (EPUB 2 and 3): a unit for each document of the reading order, without the table of contents."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.knowledge.parsing.archive import Archive, open_archive
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import DEFAULT_LIMITS, ParseLimits
from holdfast.knowledge.parsing.package import resolved
from holdfast.knowledge.parsing.safe_xml import Element, tree
from holdfast.knowledge.parsing.unit_builder import UnitBuilder
from holdfast.knowledge.parsing.units import Unit
from holdfast.knowledge.parsing.xhtml import add_chapter

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"})


def parse(path: Path, *, first: int = 1, limits: ParseLimits = DEFAULT_LIMITS) -> Iterator[Unit]:
    """The chapters in reading order."""
    with open_archive(path, "EPUB", limits) as archive:
        part = _package_part(archive)
        root = tree(archive, part, doctype=True)
        chapters = _chapters(archive, root, part.rpartition("/")[0])
        _refuse_encrypted(archive, chapters)
        title = next((" ".join((each.text or "").split()) for each in root.iter("{*}title") if each.text), None)
        builder = UnitBuilder(first=first, limits=limits, total=len(chapters))
        start = min(max(first, 1) - 1, len(chapters))
        builder.skip(start)
        for chapter in chapters[start:]:
            add_chapter(archive, chapter, builder)
            unit = builder.unit(title=title)
            if unit is not None:
                yield unit


def _package_part(archive: Archive) -> str:
    if archive.find(CONTAINER) is None:
        raise ParseError(
            "the file is not an EPUB file",
            code="not_this_format",
            why="it is an archive of another kind",
            next="Give it the ending of its format.",
        )
    for each in tree(archive, CONTAINER).iter("{*}rootfile"):
        found = archive.find(resolved("", each.get("full-path") or ""))
        if found is not None:
            return found
    raise archive.damaged("its list of chapters is missing")


def _chapters(archive: Archive, root: Element, folder: str) -> list[str]:
    """The parts in reading order."""
    items: dict[str, str] = {}
    for each in root.iter("{*}item"):
        id, place, kind = each.get("id"), each.get("href"), (each.get("media-type") or "").strip().lower()
        if id and place and kind in CHAPTERS and "nav" not in (each.get("properties") or "").split():
            items[id] = resolved(folder, place)
    found: list[str] = []
    for each in root.iter("{*}itemref"):
        place = items.pop(each.get("idref") or "", None)  # a chapter is read once
        if place is None:
            continue
        part = archive.find(place)
        if part is None:
            raise archive.damaged(f"its chapter `{place}` is missing")
        found.append(part)
    if not found:
        raise archive.damaged("it has no chapters")
    return found


def _refuse_encrypted(archive: Archive, chapters: list[str]) -> None:
    """Fonts may be encrypted, chapters may not."""
    if archive.find(ENCRYPTION) is None:
        return
    for each in tree(archive, ENCRYPTION).iter("{*}CipherReference"):
        if archive.find(resolved("", each.get("URI") or "")) in chapters:
            raise ParseError(
                "the file cannot be read",
                code="encrypted",
                why="its text is protected against copying",
                next="Add a copy without protection.",
            )
