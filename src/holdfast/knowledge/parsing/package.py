"""Office files as packages: parts, the relationships between them, and the properties of the document."""

import posixpath
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.knowledge.parsing.archive import Archive, article, open_archive
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.safe_xml import Element, tree

CONTENT_TYPES = "[Content_Types].xml"
KINDS = {"wordprocessingml": "DOCX", "presentationml": "PPTX", "spreadsheetml": "XLSX", "ms-word": "DOCX"}


@dataclass(frozen=True, slots=True)
class PartRelationship:
    """A part that another part uses. `kind` is the end of its type: `styles`, `slide`."""

    id: str
    kind: str
    target: str
    external: bool


class Package:
    """An Office file: its main part, and what that relates to."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._related: dict[str, dict[str, PartRelationship]] = {}
        if archive.find(CONTENT_TYPES) is None:
            raise _other(archive, "it is an archive of another kind")
        main = self.first("", "officeDocument")
        if main is None:
            raise archive.damaged("the relationship to its main part is missing")
        self.main = main
        self._check_kind()

    def relationships(self, part: str) -> dict[str, PartRelationship]:
        """What a part uses, by id. The empty name is the package itself."""
        found = self._related.get(part)
        if found is None:
            folder, _, name = part.rpartition("/")
            source = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
            found = self._read(source, folder) if self.archive.find(source) else {}
            self._related[part] = found
        return found

    def target(self, part: str, id: str | None) -> str | None:
        """The part with this id of relationship, if it exists in the archive."""
        found = self.relationships(part).get(id or "")
        return None if found is None or found.external else self.archive.find(found.target)

    def targets(self, part: str, kind: str) -> Iterator[str]:
        """The existing parts of a kind that a part uses."""
        for each in self.relationships(part).values():
            if each.kind == kind and not each.external and (found := self.archive.find(each.target)):
                yield found

    def first(self, part: str, kind: str) -> str | None:
        """The first part of a kind that a part uses."""
        return next(self.targets(part, kind), None)

    def title(self) -> str | None:
        """The title in the document's properties."""
        part = self.first("", "core-properties")
        if part is None:
            return None
        root = tree(self.archive, part)
        found = next((each.text for each in root.iter("{*}title") if each.text), None)
        return " ".join(found.split()) or None if found else None

    def _read(self, source: str, folder: str) -> dict[str, PartRelationship]:
        found: dict[str, PartRelationship] = {}
        for each in tree(self.archive, source).iter("{*}Relationship"):
            id, kind, target = each.get("Id"), each.get("Type"), each.get("Target")
            if id and kind and target:
                external = each.get("TargetMode") == "External"
                place = target if external else resolved(folder, target)
                found[id] = PartRelationship(id, kind.rpartition("/")[2], place, external)
        return found

    def _check_kind(self) -> None:
        kind = self._content_type()
        if kind is None:
            return
        if "sheet.binary" in kind:
            why = "it is a binary workbook (XLSB)"
            raise ParseError("the file cannot be read", code="unsupported", why=why, next="Save it as XLSX.")
        form = next((form for key, form in KINDS.items() if key in kind), None)
        form = form or next(
            (form for key, form in {"ms-excel": "XLSX", "ms-powerpoint": "PPTX"}.items() if key in kind), None
        )
        if form != self.archive.form:
            raise _other(self.archive, f"it is {article(form)}" if form else f"its main part is `{kind}`")

    def _content_type(self) -> str | None:
        default = None
        extension = posixpath.splitext(self.main)[1].lstrip(".").casefold()
        for each in tree(self.archive, CONTENT_TYPES).iter("{*}Override", "{*}Default"):
            if (each.get("PartName") or "").lstrip("/").casefold() == self.main.casefold():
                return each.get("ContentType")
            if (each.get("Extension") or "").casefold() == extension:
                default = each.get("ContentType")
        return default if default != "application/xml" else None


@contextmanager
def open_package(path: Path, form: str, limits: ParseLimits) -> Generator[Package]:
    """The package in a file of this format."""
    with open_archive(path, form, limits) as archive:
        yield Package(archive)


def resolved(folder: str, target: str) -> str:
    """The name of a part that another part in `folder` refers to. It cannot leave the archive."""
    place = unquote(urlsplit(target.replace("\\", "/")).path)
    return posixpath.normpath(posixpath.join("/", folder, place)).lstrip("/")


def paragraphs(element: Element) -> Iterator[str]:
    """The texts of the paragraphs (`a:p`) in a drawing, without empty ones."""
    for each in element.iter("{*}p"):
        text = " ".join("".join(part.text or " " for part in each.iter("{*}t", "{*}br")).split())
        if text:
            yield text


def _other(archive: Archive, why: str) -> ParseError:
    return ParseError(
        f"the file is not {article(archive.form)}",
        code="not_this_format",
        why=why,
        next="Give it the ending of its format.",
    )
