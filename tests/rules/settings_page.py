"""Rules for the settings and the page that documents them."""

import re
from pathlib import Path

from pydantic import BaseModel

from holdfast.core.config import fields
from holdfast.core.reference import settings_page

PAGE = "docs/settings.md"


def undocumented(root: Path) -> list[str]:
    """The page holds every setting as it is, and nothing else."""
    written, wanted = (root / PAGE).read_text("utf-8").splitlines(), settings_page().splitlines()
    missing = [f"{PAGE}: lacks `{line}`; run `make docs`" for line in wanted if line not in written]
    stale = [f"{PAGE}: has `{line}`, which is not so; run `make docs`" for line in written if line not in wanted]
    return missing + stale or ([] if written == wanted else [f"{PAGE}: is out of order; run `make docs`"])


def unexplained_settings(config: type[BaseModel]) -> list[str]:
    """Every setting says what it means."""
    return [
        f"{key}: no meaning; give its field a description" for key, field in fields(config) if not field.description
    ]


def unread_settings(config: type[BaseModel], root: Path) -> list[str]:
    """Every setting is read by something, or says that what reads it is not available yet."""
    package = root / "src" / "holdfast"
    texts = [
        path.read_text("utf-8")
        for path in package.rglob("*.py")
        if path.name not in ("settings.py", "reference.py") and path != package / "core" / "memory_settings.py"
    ]
    return [
        f"{key}: nothing reads it; remove it until something does"
        for key, field in fields(config)
        if "not yet available" not in (field.description or "")
        and not any(re.search(rf"\.{re.escape(key.rpartition('.')[2])}\b", text) for text in texts)
    ]
