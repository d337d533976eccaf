"""Files that are made up: a long PDF, a long text, a table."""

import random
from pathlib import Path

_NOUNS = """
    harbour ledger winter bridge signal copper garden window market river engine letter mountain paper island coffee
    doctor planet station bottle forest silver camera thunder village basket captain meadow lantern orchard
"""
WORDS = _NOUNS.split()
LINES = 46  # on a page


def sentences(chance: random.Random, count: int) -> str:
    """Sentences in English, of words at random."""
    found = (" ".join(chance.choices(WORDS, k=chance.randrange(6, 16))).capitalize() for _ in range(count))
    return ". ".join(found) + "."


def write_text(path: Path, size: int) -> Path:
    """A text of so many bytes at least, with headings and paragraphs."""
    chance = random.Random(1)
    with path.open("w") as file:
        number = written = 0
        while written < size:
            number += 1
            section = f"# Section {number}\n\n" + "".join(f"{sentences(chance, 8)}\n\n" for _ in range(12))
            written += file.write(section)
    return path


def write_table(path: Path, rows: int) -> Path:
    """Comma-separated values."""
    chance = random.Random(2)
    with path.open("w") as file:
        file.write("number,name,place,amount,note\n")
        for number in range(rows):
            some = chance.choices(WORDS, k=6)
            file.write(f"{number},{some[0]} {some[1]},{some[2]},{chance.randrange(10_000)},{' '.join(some[3:])}\n")
    return path


def write_pdf(path: Path, pages: int) -> Path:
    """A PDF of so many pages of text."""
    chance = random.Random(3)
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (b" ".join(b"%d 0 R" % (4 + 2 * page) for page in range(pages)), pages),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for page in range(pages):
        lines = [f"Page {page + 1} of the report", *(sentences(chance, 1)[:95] for _ in range(LINES))]
        shown = b"".join(b"(%s) Tj T*\n" % line.encode() for line in lines)
        stream = b"BT /F1 10 Tf 50 800 Td 15 TL\n" + shown + b"ET"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * page)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    with path.open("wb") as file:
        file.write(b"%PDF-1.4\n")
        places: list[int] = []
        for number, content in enumerate(objects, 1):
            places.append(file.tell())
            file.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
        start = file.tell()
        file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
        file.writelines(b"%010d 00000 n \n" % place for place in places)
        file.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return path
