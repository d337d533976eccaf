"""Services: functions that are JSON-RPC methods, `host/service/action/version`, and tools at the same time."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.errors import InvalidInput
from holdfast.skills.function_tools import tool_of
from holdfast.skills.tool import Access, Tool

MAX_METHOD = 200  # characters
MAX_NAME = 64  # characters of a tool's name
HASH = 6  # of these, for the hash if the method is too long

METHOD = r"[!-.0-~]+(?:/[!-.0-~]+){3}"  # ASCII; `_METHOD` also takes other printable characters
_METHOD = re.compile(r"[^\s/]+(?:/[^\s/]+){3}")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def service_of(
    function: Callable[..., Any],
    method: str,
    schema: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    idempotent: bool = False,
    timeout: float | None = None,
    approve: bool = False,
    access: Access = "execute",
) -> Tool:
    """Return the tool of a function that serves a method. `schema` describes its params; default: its signature."""
    wrong = method_error(method)
    if wrong is not None:
        raise _declaration_error(method, *wrong)
    tool = tool_of(
        function,
        name=name_of(method) if name is None else name,
        idempotent=idempotent,
        timeout=timeout,
        approve=approve,
        access=access,
        schema=schema,
    )
    return replace(tool, service=method)


def method_error(method: object) -> tuple[str, str] | None:
    """Return what is wrong with a method and how to fix it, or None."""
    if not isinstance(method, str) or not _METHOD.fullmatch(method) or not method.isprintable():
        next = "Write `host/service/action/version`: four parts, without spaces."
        return f"{method!r:.200} is not the name of a method", next
    if len(method) > MAX_METHOD:
        return f"its method has {len(method)} characters", f"Shorten it to at most {MAX_METHOD}."
    return None


def name_of(method: str) -> str:
    """Return the tool name of a method. A name that is too long is cut and gets a hash."""
    name = _NO_NAME.sub("_", method)
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - HASH - 1]}_{hashlib.sha256(method.encode()).hexdigest()[:HASH]}"


def _declaration_error(method: object, why: str, next: str) -> InvalidInput:
    return InvalidInput(f"the service {method!r:.200} cannot be declared", why=why, next=next)
