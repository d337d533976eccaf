"""The encoding of a text file, by its bytes: cheap, and careful not to call a binary file a text."""

import codecs
import re
from collections.abc import Callable
from pathlib import Path

SAMPLE = 64 * 1024  # bytes with letters beyond ASCII that decide between older encodings
PIECE = 1 << 20

_BOMS = (  # the longer ones first: the BOM of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")  # ESC colours logs, BS and FF are in manual pages
_WIDE = 0.2  # share of bytes that are zero in the halves of UTF-16 or UTF-32 text in Latin letters
_HIGH = re.compile(rb"[^\n]*[\x80-\xff][^\n]*\n?")

_SIMPLIFIED = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现"
    "当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重"
)
_TRADITIONAL = frozenset(
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現"
    "當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重"
)
_PUNCTUATION = frozenset(
    "\u3000\u3001\u3002\uff0c\uff1a\uff1b\uff1f\uff01\u201c\u201d\u300a\u300b\u300c\u300d\uff08\uff09"
)
_CONVINCING = 0.15  # share of frequent characters from which a text counts as one of a language


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text in any encoding that is known here."""
    if head.startswith(tuple(bom for bom, _ in _BOMS)) or _without_bom(head):
        return False
    return b"\0" in head or len(_CONTROLS.findall(head)) > len(head) // 100


def find_encoding(path: Path) -> str:
    """Return the encoding of a text file. Decode it with `errors="replace"`: a text may have damaged places."""
    with path.open("rb") as file:
        head = file.read(SAMPLE)
        for bom, name in _BOMS:
            if head.startswith(bom):
                return name
        if wide := _without_bom(head):
            return wide
        decoder = codecs.getincrementaldecoder("utf-8")()
        piece = head
        try:
            while piece:
                decoder.decode(piece)
                piece = file.read(PIECE)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return older_encoding(_sample(head, piece, file.read(PIECE)))
    return "utf-8"


def older_encoding(sample: bytes) -> str:
    """Return the encoding of a text that is not valid UTF-8, by the characters that each would give it."""
    replaced = sample.decode("utf-8", errors="replace")
    broken = replaced.count("\ufffd")
    if sum(character > "\x7f" for character in replaced) - broken > 10 * broken:
        return "utf-8"  # with damaged places
    best, score = "cp1252", _CONVINCING
    for name, frequent in (("gb18030", _SIMPLIFIED), ("big5hkscs", _TRADITIONAL)):
        found = _share(sample, name, lambda character, frequent=frequent: character in frequent)
        if found > score:
            best, score = name, found
    for name in ("shift_jis", "euc_jp"):
        found = _share(sample, name, lambda character: "\u3041" <= character <= "\u30fe")
        if found > max(score, 0.3):
            best, score = name, found
    if _share(sample, "euc_kr", lambda character: "\uac00" <= character <= "\ud7a3") > 0.9:
        return "cp949"
    return best if best != "cp1252" or _fits(sample, "cp1252") else "latin-1"


def _share(sample: bytes, encoding: str, is_frequent: Callable[[str], bool]) -> float:
    """Return the share of frequent characters among those beyond ASCII; 0 if the text is not in that encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    beyond = [character for character in text if character > "\x7f" and character not in _PUNCTUATION]
    return sum(map(is_frequent, beyond)) / len(beyond) if beyond else 0.0


def _fits(sample: bytes, encoding: str) -> bool:
    try:
        sample.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _sample(*pieces: bytes) -> bytes:
    """Return lines that have letters beyond ASCII."""
    found = bytearray()
    for piece in pieces:
        for match in _HIGH.finditer(piece):
            found += match[0][: SAMPLE - len(found)]
            if len(found) >= SAMPLE:
                return bytes(found)
    return bytes(found)


def _without_bom(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32 if the zeros of Latin letters show it."""
    if len(head) < 4 or b"\0" not in head:
        return None
    quarters = [head[place::4].count(0) / max(1, len(head[place::4])) for place in range(4)]
    candidates = (
        ("utf-32-le", quarters[1] > _WIDE and min(quarters[2:]) > 0.99),
        ("utf-32-be", quarters[2] > _WIDE and min(quarters[:2]) > 0.99),
        ("utf-16-le", min(quarters[1], quarters[3]) > _WIDE and max(quarters[0], quarters[2]) < 0.02),
        ("utf-16-be", min(quarters[0], quarters[2]) > _WIDE and max(quarters[1], quarters[3]) < 0.02),
    )
    for name, likely in candidates:
        if likely:
            try:
                text = codecs.getincrementaldecoder(name)().decode(head)
            except UnicodeDecodeError:
                continue
            if not _CONTROLS.search(text[:4096].encode()):
                return name
    return None
