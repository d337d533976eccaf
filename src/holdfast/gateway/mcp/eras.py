"""Eras: tells modern messages, which need no session, from legacy messages. Pure."""

from collections.abc import Mapping
from typing import Any, cast

from holdfast.mcp.protocol import LEGACY, VERSION


def is_modern(message: object, version: str | None) -> bool:
    """Whether a message gets a modern answer; `version` is the one that the transport names, if any.

    A message that names a version in `_meta` is modern. Without one, it is modern if the transport names a version that
    is not a legacy one, unless it is `initialize`.
    """
    if VERSION in meta_of(message):
        return True
    if version is None or version in LEGACY:
        return False
    return not isinstance(message, dict) or cast(dict[str, Any], message).get("method") != "initialize"


def meta_of(message: object) -> Mapping[str, Any]:
    """Return the `_meta` of a message; empty if it has none."""
    params = cast(dict[str, Any], message).get("params") if isinstance(message, dict) else None
    meta = cast(dict[str, Any], params).get("_meta") if isinstance(params, dict) else None
    return cast(dict[str, Any], meta) if isinstance(meta, dict) else {}
