"""Eras: whether a message is of the era without sessions, by how it opens. Pure."""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.mcp.protocol import LEGACY, VERSION


def is_modern(message: object, version: str | None) -> bool:
    """Whether a message is to be answered as a modern one; `version` is what its transport says, if that says any.

    Whoever names the version in the message itself is modern, whatever they ask for. Else a version that no older
    client has is of a modern one, unless it opens a session.
    """
    if VERSION in meta_of(message):
        return True
    if version is None or version in LEGACY:
        return False
    return not isinstance(message, dict) or cast(dict[str, Any], message).get("method") != "initialize"


def meta_of(message: object) -> Mapping[str, Any]:
    """What a message says of itself."""
    params = cast(dict[str, Any], message).get("params") if isinstance(message, dict) else None
    meta = cast(dict[str, Any], params).get("_meta") if isinstance(params, dict) else None
    return cast(dict[str, Any], meta) if isinstance(meta, dict) else {}
