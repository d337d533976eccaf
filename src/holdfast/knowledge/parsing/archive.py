"""Zip archives from strangers: read by exact name, counted while they inflate, never extracted."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
RATIO_FROM = 16 * 1024 * 1024
MEMBER_BYTES = 46 + 512  # of an entry of the index with a long name; what is beyond is an attack
END_RECORD = b"PK\x05\x06"
DEFLATE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, UnicodeDecodeError, ValueError)
SAVE_AGAIN = "Open the file in the program that made it, save it again and add the new file."


class PartStream(Protocol):
    """A part that is being read."""

    def read(self, size: int = -1) -> bytes: ...


class Archive:
    """A zip archive whose parts are streams. What inflates is counted as it comes: no header is believed."""

    def __init__(self, file: IO[bytes], form: str, limits: ParseLimits) -> None:
        self.form = form
        self.limits = limits
        self._inflated: dict[str, int] = {}  # a part that is read twice counts once
        try:
            self._zip = zipfile.ZipFile(file)
        except BROKEN as error:
            raise self.damaged(f"its index is not readable ({error})") from error
        infos = self._zip.infolist()
        if len(infos) > limits.archive_entries:
            raise _too_many(len(infos), limits)
        self._folded: dict[str, str] = {}
        self._doubled: set[str] = set()
        for info in infos:
            key = _key(info.filename)
            if key in self._folded:
                self._doubled.add(self._folded[key])
            self._folded.setdefault(key, info.filename)

    def find(self, name: str) -> str | None:
        """The part of this name, as the archive spells it, with `/` between folders: part names ignore case."""
        found = self._folded.get(_key(name))
        return None if found is None else found.replace("\\", "/")

    def names(self) -> list[str]:
        """The names of all parts. They are keys, not paths."""
        return list(self._folded.values())

    @contextmanager
    def open(self, name: str) -> Generator[PartStream]:
        """A part as a stream."""
        found = self._folded.get(_key(name))
        if found is None:
            raise self.damaged(f"its part `{name}` is missing")
        if found in self._doubled:
            raise self.damaged(f"it has two parts named `{name}`")
        info = self._zip.getinfo(found)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise self.damaged(f"its part `{name}` is a link to a file")
        if info.flag_bits & 0x1:
            raise encrypted()
        if info.compress_type not in DEFLATE:
            raise ParseError(
                "the file cannot be read",
                code="unsupported",
                why=f"its part `{name}` is compressed by a method that {self.form} files do not have",
                next=SAVE_AGAIN,
            )
        try:
            stream = self._zip.open(info)
        except (*BROKEN, OSError) as error:  # a damaged place of a part can be none
            raise self.damaged(f"its part `{name}` is not readable ({error})") from error
        with stream:
            yield _Counted(self, found, stream, info.compress_size)

    def read(self, name: str) -> bytes:
        """A whole part, which must not be large."""
        most = self.limits.part_bytes
        with self.open(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise self.too_large(f"its part `{name}` has more than {megabytes(most)}")
        return content

    def count(self, name: str, position: int, compressed: int) -> None:
        """Note how much of a part has inflated."""
        self._inflated[name] = max(position, self._inflated.get(name, 0))
        total = sum(self._inflated.values())
        if total > self.limits.inflated_bytes:
            raise self.too_large(f"it inflates to more than {megabytes(self.limits.inflated_bytes)}")
        if position > RATIO_FROM and position > self.limits.archive_ratio * max(compressed, 1):
            raise self.too_large(f"its part `{name}` inflates to more than {self.limits.archive_ratio} times its size")

    def damaged(self, why: str) -> ParseError:
        """The error of an archive that is truncated or malformed."""
        return ParseError("the file cannot be read", code="damaged", why=why, next=SAVE_AGAIN)

    def too_large(self, why: str) -> ParseError:
        """The error of an archive that exceeds a limit."""
        return ParseError("the file is not read", code="too_large", why=why, next="Add a smaller file.")


def _key(name: str) -> str:
    """What two spellings of a name share: some programs write `\\` for `/`."""
    return name.replace("\\", "/").lstrip("/").casefold()


class _Counted:
    """A stream that counts what it returns."""

    def __init__(self, archive: Archive, name: str, stream: IO[bytes], compressed: int) -> None:
        self._archive = archive
        self._name = name
        self._stream = stream
        self._compressed = compressed
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes; at most 1 MB at once is inflated without a look at the count."""
        parts: list[bytes] = []
        while size != 0:
            try:
                part = self._stream.read(min(size, 2**20) if size > 0 else 2**20)
            except BROKEN as error:
                raise self._archive.damaged(f"its part `{self._name}` is truncated or malformed ({error})") from error
            if not part:
                break
            self._position += len(part)
            self._archive.count(self._name, self._position, self._compressed)
            parts.append(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)


@contextmanager
def open_archive(path: Path, form: str, limits: ParseLimits) -> Generator[Archive]:
    """The archive in a file that should be one. `form` is how the error calls the format: `DOCX`."""
    with path.open("rb") as file:
        head = file.read(8)
        if head.startswith(OLE):
            raise _ole(file, form)
        if not head.startswith((b"PK\x03\x04", END_RECORD)):
            raise ParseError(
                f"the file is not {article(form)}",
                code="damaged" if not head else "not_this_format",
                why=f"it is {_kind(head)}",
                next="Give it the ending of its format, or save it in this format.",
            )
        _check_index(file, limits)
        yield Archive(file, form, limits)


def article(form: str) -> str:
    """A format with its article: `an XLSX file`."""
    return f"{'an' if form[:1] in 'AEFHILMNORSX' else 'a'} {form} file"


def encrypted() -> ParseError:
    """The error of a file that has a password."""
    return ParseError(
        "the file cannot be read",
        code="encrypted",
        why="it is protected by a password",
        next="Save it without a password and add it again.",
    )


def megabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 2**20:.0f} MB" if size >= 2**20 else f"{size:,} bytes"


def _check_index(file: IO[bytes], limits: ParseLimits) -> None:
    """Refuse an index that is too large before it is read into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 65_557))
    tail = file.read()
    at = tail.rfind(END_RECORD)
    if at < 0 or len(tail) < at + 22:
        raise ParseError(
            "the file cannot be read",
            code="damaged",
            why="its end is missing",
            next="It was probably not copied completely: copy it again.",
        )
    entries, index = struct.unpack_from("<HI", tail, at + 10)
    locator = tail.rfind(b"PK\x06\x07", 0, at)
    if locator >= 0 and len(tail) >= locator + 16:
        (place,) = struct.unpack_from("<Q", tail, locator + 8)
        if place + 56 <= size:
            file.seek(place)
            record = file.read(56)
            if record.startswith(b"PK\x06\x06"):
                entries, index = struct.unpack_from("<QQ", record, 32)
    file.seek(0)
    if entries > limits.archive_entries or index > limits.archive_entries * MEMBER_BYTES:
        raise _too_many(entries, limits)


def _too_many(entries: int, limits: ParseLimits) -> ParseError:
    return ParseError(
        "the file is not read",
        code="too_large",
        why=f"its archive has {entries:,} parts; at most {limits.archive_entries:,} are read",
        next="Add a smaller file.",
    )


def _ole(file: IO[bytes], form: str) -> ParseError:
    """Why a file in Microsoft's old container is not read: it is encrypted, or of the formats before 2007."""
    names = {name: name.encode("utf-16-le") for name in ("EncryptedPackage", "WordDocument", "Workbook", "PowerPoint")}
    found: set[str] = set()
    file.seek(0)
    overlap = b""
    while block := file.read(2**20):
        found |= {name for name, raw in names.items() if raw in overlap + block}
        overlap = block[-64:]
        if "EncryptedPackage" in found:
            return encrypted()
    return ParseError(
        "the file cannot be read",
        code="unsupported" if found else "not_this_format",
        why="it is in the binary format of Office 97 to 2003" if found else f"it is not {article(form)}",
        next=f"Open it in its program and save it as {form}.",
    )


def _kind(head: bytes) -> str:
    kinds = {
        b"%PDF": "a PDF",
        b"{\\rtf": "an RTF file",
        b"\x89PNG": "an image",
        b"\xff\xd8\xff": "an image",
        b"\x1f\x8b": "a gzip archive",
        b"Rar!": "a RAR archive",
        b"7z\xbc\xaf": "a 7z archive",
        b"<": "an HTML or XML file",
    }
    if not head:
        return "empty"
    return next((kind for start, kind in kinds.items() if head.startswith(start)), "another kind of file")
