"""What the engine tells other MCP programs about itself: its name and version."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final


def _version() -> str:
    try:
        return version("holdfast")
    except PackageNotFoundError:  # it runs from source
        return "0"


SERVER: Final[dict[str, Any]] = {"name": "holdfast", "title": "Holdfast", "version": _version()}
