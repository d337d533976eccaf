"""Which format a file has, by its content first, and which parser reads it."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath
from typing import Protocol, cast

from holdfast.knowledge.parsing.encodings import is_binary
from holdfast.knowledge.parsing.errors import ParseError
from holdfast.knowledge.parsing.limits import ParseLimits
from holdfast.knowledge.parsing.units import Unit

HEAD = 64 * 1024  # bytes that tell the format
PARSING = "holdfast.knowledge.parsing."

TEXT, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
CSV, TSV, EPUB = "text/csv", "text/tab-separated-values", "application/epub+zip"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = _OFFICE + "wordprocessingml.document"
PPTX = _OFFICE + "presentationml.presentation"
XLSX = _OFFICE + "spreadsheetml.sheet"


class Parse(Protocol):
    """A parser: yields the units of a file from number `first` on. Each is the same, whatever `first` is."""

    def __call__(self, path: Path, *, first: int = 1, limits: ParseLimits) -> Iterator[Unit]: ...


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is read: its name for people, its endings, and its parser as `module:function`."""

    name: str
    media_type: str
    endings: tuple[str, ...]
    parser: str


def _code(name: str, media_type: str, *endings: str) -> Format:
    return Format(name, media_type, endings, f"code:{name.lower()}")


def _lines(name: str, media_type: str, *endings: str) -> Format:
    return Format(name, media_type, endings, "plain:parse_lines")


FORMATS: tuple[Format, ...] = (
    Format("plain text", TEXT, ("txt", "text", "rst", "adoc", "asciidoc", "tex", "org", "srt", "vtt"), "plain:parse"),
    Format("Markdown", MARKDOWN, ("md", "markdown", "mdown", "mkd", "mdx", "qmd", "rmd"), "markdown:parse"),
    Format("HTML", HTML, ("html", "htm", "xhtml", "xht"), "html:parse"),
    Format("PDF", PDF, ("pdf",), "pdf:parse"),
    Format("Word (DOCX)", DOCX, ("docx", "docm", "dotx", "dotm"), "docx:parse"),
    Format("PowerPoint (PPTX)", PPTX, ("pptx", "pptm", "ppsx", "potx"), "pptx:parse"),
    Format("Excel (XLSX)", XLSX, ("xlsx", "xlsm", "xltx", "xltm"), "xlsx:parse"),
    Format("EPUB", EPUB, ("epub",), "epub:parse"),
    Format("CSV", CSV, ("csv",), "csv:parse"),
    Format("TSV", TSV, ("tsv", "tab"), "csv:parse"),
    _code("Python", "text/x-python", "py", "pyi", "pyw"),
    _code("JavaScript", "text/javascript", "js", "mjs", "cjs", "jsx"),
    _code("TypeScript", "text/x-typescript", "ts", "mts", "cts"),
    _code("TSX", "text/x-tsx", "tsx"),
    _code("Java", "text/x-java-source", "java"),
    _code("Go", "text/x-go", "go"),
    _code("Rust", "text/x-rust", "rs"),
    Format(
        "other source code",
        "text/x-source-code",
        (
            *("c", "h", "cc", "cpp", "cxx", "hpp", "hh", "hxx", "m", "mm", "cs", "fs", "vb", "swift", "kt", "kts"),
            *("scala", "groovy", "gradle", "clj", "cljs", "ex", "exs", "erl", "hs", "ml", "mli", "elm", "dart", "lua"),
            *("pl", "pm", "php", "rb", "r", "jl", "nim", "zig", "v", "d", "pas", "f90", "asm", "s", "sol", "cu"),
            *("sh", "bash", "zsh", "fish", "ps1", "bat", "cmd", "awk", "sed", "tcl", "vim", "el", "lisp", "scm"),
            *("sql", "graphql", "gql", "proto", "thrift", "css", "scss", "sass", "less", "vue", "svelte", "astro"),
            *("tf", "hcl", "nix", "cmake", "mk", "dockerfile", "jinja", "j2", "tmpl"),
        ),
        "code:parse",
    ),
    _lines("JSON", "application/json", "json", "jsonl", "ndjson", "geojson", "ipynb", "har"),
    _lines("YAML", "application/yaml", "yaml", "yml"),
    _lines("XML", "application/xml", "xml", "xsd", "xsl", "xslt", "svg", "rss", "atom", "wsdl", "plist"),
    _lines("TOML", "application/toml", "toml"),
    _lines("settings", "text/x-ini", "ini", "cfg", "conf", "properties", "env", "editorconfig"),
    _lines("log", "text/x-log", "log"),
    _lines("diff", "text/x-diff", "diff", "patch"),
)
PARSERS: dict[str, str] = {each.media_type: PARSING + each.parser for each in FORMATS}

_BY_ENDING = {ending: each.media_type for each in FORMATS for ending in each.endings}
_BY_NAME = {
    "dockerfile": "text/x-source-code",
    "makefile": "text/x-source-code",
    "cmakelists.txt": "text/x-source-code",
    "jenkinsfile": "text/x-source-code",
    "readme": MARKDOWN,
}
_BINARY = frozenset({PDF, DOCX, PPTX, XLSX, EPUB})
BINARY_ENDINGS = frozenset(f".{ending}" for each in FORMATS if each.media_type in _BINARY for ending in each.endings)
_SAME = {
    "application/xhtml+xml": HTML,
    "text/x-markdown": MARKDOWN,
    "text/xml": "application/xml",
    "application/x-yaml": "application/yaml",
    "text/yaml": "application/yaml",
    "application/javascript": "text/javascript",
    "application/csv": CSV,
}

_SAVE_AS = "Convert it to PDF, DOCX, Markdown or plain text."
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"{\\rtf", "an RTF document", "Open it in a word processor and save it as DOCX."),
    (b"\x89PNG\r\n\x1a\n", "an image", "Add its text: nothing here reads text from images."),
    (b"\xff\xd8\xff", "an image", "Add its text: nothing here reads text from images."),
    (b"GIF8", "an image", "Add its text: nothing here reads text from images."),
    (b"II*\0", "an image", "Add its text: nothing here reads text from images."),
    (b"MM\0*", "an image", "Add its text: nothing here reads text from images."),
    (b"\0\0\1\0", "an image", "Add its text: nothing here reads text from images."),
    (b"8BPS", "an image", "Add its text: nothing here reads text from images."),
    (b"\x1f\x8b", "a gzip archive", "Unpack it and add the files."),
    (b"BZh", "a bzip2 archive", "Unpack it and add the files."),
    (b"\xfd7zXZ\0", "an xz archive", "Unpack it and add the files."),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", "Unpack it and add the files."),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Unpack it and add the files."),
    (b"Rar!\x1a\x07", "a RAR archive", "Unpack it and add the files."),
    (b"ID3", "a recording", "Add a transcript."),
    (b"OggS", "a recording", "Add a transcript."),
    (b"fLaC", "a recording", "Add a transcript."),
    (b"\x1aE\xdf\xa3", "a video", "Add a transcript."),
    (b"SQLite format 3\0", "a database", "Export its tables as CSV."),
    (b"PAR1", "a Parquet file", "Export it as CSV."),
    (b"\x7fELF", "a program", _SAVE_AS),
    (b"MZ\x90", "a program", _SAVE_AS),
    (b"\xca\xfe\xba\xbe", "a program", _SAVE_AS),
    (b"\0asm", "a program", _SAVE_AS),
    (b"wOF", "a font", _SAVE_AS),
    (b"\0\1\0\0\0", "a font", _SAVE_AS),
    (b"%!PS", "a PostScript file", "Convert it to PDF."),
    (b"AT&TFORM", "a DjVu document", "Convert it to PDF."),
)
_RIFF = {b"WEBP": "an image", b"WAVE": "a recording", b"AVI ": "a video"}
_UNREADABLE_ZIP = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error),
    *(OSError, EOFError, KeyError, ValueError, RuntimeError),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML = re.compile(
    rb"(?:\s|<!--.*?-->|<\?xml[^>]*>)*<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL
)
_XML = re.compile(rb"\s*<\?xml\s")
_SHEBANG = re.compile(rb"#!.*?\b(python|node|deno|bun|\w*sh)[\d.]*\b")
_OFFICE_MAIN = (
    (b"wordprocessingml.document.main", DOCX),
    (b"wordprocessingml.template.main", DOCX),
    (b"ms-word.document.macroEnabled", DOCX),
    (b"ms-word.template.macroEnabled", DOCX),
    (b"presentationml.presentation.main", PPTX),
    (b"presentationml.slideshow.main", PPTX),
    (b"presentationml.template.main", PPTX),
    (b"ms-powerpoint.", PPTX),
    (b"spreadsheetml.sheet.main", XLSX),
    (b"spreadsheetml.template.main", XLSX),
    (b"ms-excel.sheet.macroEnabled", XLSX),
    (b"ms-excel.template.macroEnabled", XLSX),
)


def find_parser(media_type: str, parsers: Mapping[str, str] | None = None) -> Parse:
    """Return the parser of a media type. `parsers` are further ones, as `module:function`."""
    module, _, function = {**PARSERS, **(parsers or {})}[media_type].partition(":")
    return cast(Parse, getattr(import_module(module), function))


def find_media_type(
    path: Path, *, name: str = "", declared: str | None = None, parsers: Mapping[str, str] | None = None
) -> str:
    """Return the media type of a file, by its content, then by its name, then as `declared`.

    Raises ParseError if nothing here reads it. `parsers` are media types that are believed as declared.
    """
    name = name or path.name
    if declared is not None:
        declared = declared.partition(";")[0].strip().lower()
        if parsers and declared in parsers:
            return declared
        declared = _SAME.get(declared, declared)
    with path.open("rb") as file:
        head = file.read(HEAD)
    named = _by_name(name)
    if not head:
        return _empty(name, named)
    found = _binary_type(path, name, head)
    if found is not None:
        return found
    if is_binary(head):
        raise _unsupported(name, "a binary file of an unknown format", _SAVE_AS)
    return _text_type(head, named, declared)


def formats_for_people() -> str:
    """Return the names of the formats that are read."""
    return ", ".join(dict.fromkeys(each.name for each in FORMATS))


def _text_type(head: bytes, named: str | None, declared: str | None) -> str:
    """Return the media type of a text. A web page is one under every name; all else that texts are, their names say."""
    if named != HTML and _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        is_text_with_a_page = named is not None and named not in (TEXT, *_BINARY)  # such as a template, or notes
        if not is_text_with_a_page:
            return HTML
    if named is not None and named not in _BINARY:
        return named
    if declared in PARSERS and declared not in _BINARY:
        return declared
    if found := _SHEBANG.match(head):
        program = found[1]
        return {b"python": "text/x-python"}.get(
            program, "text/javascript" if program in (b"node", b"deno", b"bun") else "text/x-source-code"
        )
    return "application/xml" if _XML.match(head) else TEXT


def _by_name(name: str) -> str | None:
    last = PurePath(name.replace("\\", "/")).name.lower()
    return _BY_NAME.get(last) or _BY_ENDING.get(last.rpartition(".")[2] if "." in last else "")


def _empty(name: str, named: str | None) -> str:
    if named in _BINARY:
        raise ParseError(f"{name} cannot be read", code="damaged", why="it is empty", next="Copy or download it again.")
    return named or TEXT


def _binary_type(path: Path, name: str, head: bytes) -> str | None:
    """Return the media type of a file that is no text, or None if it may be one."""
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.startswith((b"PK\3\4", b"PK\5\6", b"PK\7\x08")):
        return _zipped_type(path, name)
    if head.startswith(_OLE):
        raise _ole_error(path, name)
    for magic, what, advice in _MAGIC:
        if head.startswith(magic):
            raise _unsupported(name, what, advice)
    if head[:4] == b"RIFF" and head[8:12] in _RIFF:
        what = _RIFF[head[8:12]]
        raise _unsupported(name, what, "Add its text." if what == "an image" else "Add a transcript.")
    if head[4:8] == b"ftyp":
        raise _unsupported(name, "a video, a recording or an image", "Add a transcript.")
    if head[257:262] == b"ustar":
        raise _unsupported(name, "a tar archive", "Unpack it and add the files.")
    return None


def _zipped_type(path: Path, name: str) -> str:
    """Return the media type of an archive by what is in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = set(archive.namelist())
            kind = _beginning(archive, "mimetype", 200) if "mimetype" in entries else b""
            types = _beginning(archive, "[Content_Types].xml", 1 << 20) if "[Content_Types].xml" in entries else b""
    except _UNREADABLE_ZIP as error:
        raise ParseError(
            f"{name} cannot be read",
            code="damaged",
            why=f"it is an archive that is truncated or damaged ({str(error) or type(error).__name__})",
            next="Copy or download it again.",
        ) from None
    if kind.strip().startswith(EPUB.encode()) or (not types and "META-INF/container.xml" in entries):
        return EPUB
    if b"opendocument" in kind:
        raise _unsupported(name, "an OpenDocument file", "Save it as DOCX, PPTX or XLSX.")
    for part, media_type in _OFFICE_MAIN:
        if part in types:
            return media_type
    if b"ms-excel.sheet.binary" in types:
        raise _unsupported(name, "a binary Excel workbook (XLSB)", "Save it as XLSX.")
    raise _unsupported(name, "a zip archive", "Unpack it and add the files.")


def _beginning(archive: zipfile.ZipFile, entry: str, size: int) -> bytes:
    with archive.open(entry) as file:
        return file.read(size)


def _ole_error(path: Path, name: str) -> ParseError:
    """Return what is wrong with a file in the container of older Office files."""
    with path.open("rb") as file:
        content = file.read(16 * 1024 * 1024)
    if "EncryptedPackage".encode("utf-16-le") in content:
        return ParseError(
            f"{name} cannot be read",
            code="encrypted",
            why="it is encrypted with a password",
            next="Open it with its password, and save it without one.",
        )
    for mark, what, ending in (
        ("WordDocument", "a Word document of before 2007 (DOC)", "DOCX"),
        ("PowerPoint Document", "a PowerPoint presentation of before 2007 (PPT)", "PPTX"),
        ("Workbook", "an Excel workbook of before 2007 (XLS)", "XLSX"),
        ("__substg1.0_", "an Outlook message (MSG)", "plain text"),
    ):
        if mark.encode("utf-16-le") in content:
            return _unsupported(name, what, f"Open it and save it as {ending}.")
    return _unsupported(name, "an Office file of before 2007", "Open it and save it as DOCX, PPTX or XLSX.")


def _unsupported(name: str, what: str, advice: str) -> ParseError:
    return ParseError(f"{name} cannot be read", code="unsupported", why=f"it is {what}", next=advice)
