"""Writes small PDF files with text in Helvetica."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LEFT, TOP, LEADING = 72, 760, 1.2


@dataclass(frozen=True, slots=True)
class Text:
    """A line at a place: `y` points from the bottom of the page."""

    text: str
    y: float
    x: float = LEFT
    size: float = 11
    bold: bool = False


def page_of(*paragraphs: str | Text, size: float = 11) -> list[Text]:
    """Return the lines of a page: paragraphs, whose lines end at `\\n`, with a gap between them."""
    lines: list[Text] = []
    y: float = TOP
    for paragraph in paragraphs:
        if isinstance(paragraph, Text):
            lines.append(paragraph)
            continue
        level = len(paragraph) - len(paragraph.lstrip("#"))
        height = size * (1 + (4 - level) * 0.3) if level else size
        for line in paragraph.lstrip("# ").split("\n"):
            lines.append(Text(line, y, size=height))
            y -= LEADING * height
        y -= height
    return lines


def write_pdf(
    path: Path,
    pages: Sequence[Sequence[Text]],
    *,
    title: str | None = None,
    bookmarks: Sequence[tuple[str, int]] = (),
    encrypted: bool = False,
) -> Path:
    """Write a PDF. `bookmarks` are titles with the numbers of their pages."""
    objects: list[bytes] = [b"", b"", _font("Helvetica"), _font("Helvetica-Bold")]
    first = len(objects) + 1
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    for number, lines in enumerate(pages):
        content = "\n".join(_shown(line) for line in lines).encode("cp1252")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {first + 2 * number + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    outlines = ""
    if bookmarks:
        root = len(objects) + 1
        last = root + len(bookmarks)
        objects.append(f"<< /Type /Outlines /First {root + 1} 0 R /Last {last} 0 R /Count {len(bookmarks)} >>".encode())
        for place, (name, page) in enumerate(bookmarks, root + 1):
            after = f"/Next {place + 1} 0 R" if place < last else ""
            before = f"/Prev {place - 1} 0 R" if place > root + 1 else ""
            target = first + 2 * (page - 1)
            objects.append(
                f"<< /Title ({_escaped(name)}) /Parent {root} 0 R {after} {before} "
                f"/Dest [{target} 0 R /Fit] >>".encode()
            )
        outlines = f"/Outlines {root} 0 R"
    objects[0] = f"<< /Type /Catalog /Pages 2 0 R {outlines} >>".encode()
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    trailer = f"/Size {len(objects) + 2} /Root 1 0 R"
    if title is not None:
        objects.append(f"<< /Title ({_escaped(title)}) >>".encode())
        trailer += f" /Info {len(objects)} 0 R"
    if encrypted:  # the keys fit no password
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'41' * 32}> /U <{'42' * 32}> >>".encode())
        trailer += (
            f" /Encrypt {len(objects)} 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]"
        )
    _write(path, objects, trailer)
    return path


def _write(path: Path, objects: Sequence[bytes], trailer: str) -> None:
    data = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places: list[int] = []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        data += b"%010d 00000 n \n" % place
    data += f"trailer\n<< {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    path.write_bytes(data)


def _font(name: str) -> bytes:
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>".encode()


def _shown(line: Text) -> str:
    return f"BT /{'F2' if line.bold else 'F1'} {line.size:g} Tf {line.x:g} {line.y:g} Td ({_escaped(line.text)}) Tj ET"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
