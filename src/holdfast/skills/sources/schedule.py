"""When the documents of sources are checked for changes. Pure."""

from holdfast.skills.sources.settings import SourceSettings, file_of
from holdfast.skills.sources.source import SourceKind

PROGRAM_SECONDS = 3600.0  # between two checks of an MCP server that is a program, which is started for each
FIRST_RETRY = 5.0  # seconds after a check that failed, if the source has no interval
MOST_RETRY = 600.0  # seconds, after many that failed, if the interval is not longer


def own_seconds(kind: SourceKind, location: str, settings: SourceSettings) -> float | None:
    """Return a source's own seconds between two checks; None: the default; 0: there is nothing to check, or never."""
    if settings.by_hand:
        return 0.0
    if kind == "mcp" and not location and settings.reload_seconds is None:
        return PROGRAM_SECONDS
    return settings.reload_seconds if location or kind == "mcp" else 0.0


def pause_of(own: float | None, default: float, location: str) -> float | None:
    """Return the seconds until the next check; None: there is none, until somebody asks or a file changes."""
    return None if file_of(location) else (default if own is None else own) or None


def retry_after(pause: float | None, failures: int) -> float:
    """Return the seconds until the check is tried again, after failures in a row."""
    first = pause or FIRST_RETRY
    return max(first, min(first * 2.0 ** min(failures - 1, 20), MOST_RETRY))
