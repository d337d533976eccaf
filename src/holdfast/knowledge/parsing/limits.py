"""What a file may contain at most."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """What a parser accepts. Where a file exceeds a limit, the parser raises a `ParseError`: it never cuts silently."""

    inflated_bytes: int = 512 * 1024 * 1024  # of all parts of an archive that are read
    archive_entries: int = 20_000
    archive_ratio: int = 500  # inflated to compressed bytes of a part, once it is over 16 MB
    part_bytes: int = 64 * 1024 * 1024  # of a part that is read as a whole: styles, a slide, a chapter
    units: int = 20_000  # pages, slides, portions of a sheet
    characters: int = 400_000_000  # of all text
    depth: int = 256  # of nested elements, lists or tables


DEFAULT_LIMITS = ParseLimits()
