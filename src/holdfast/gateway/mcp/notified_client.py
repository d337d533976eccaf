"""Clients that receive progress and logs of their request, each only if they ask for it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.core.errors import InvalidInput
from holdfast.mcp.protocol import LOG_LEVELS
from holdfast.skills.client import Client

Notify = Callable[[str, Mapping[str, Any]], Awaitable[None]]  # a method and its params


class NotifiedClient(Client):
    """The client of a request; `progress_token` identifies its progress, `level` is the lowest level of its logs."""

    def __init__(self, notify: Notify, *, progress_token: str | int | None, level: str | None) -> None:
        self._notify = notify
        self._token = progress_token
        self.wants_progress = progress_token is not None
        self.level = level

    async def progress(self, progress: float, *, total: float | None = None, message: str | None = None) -> None:
        """Send progress, if the request asks for it."""
        if self._token is None:
            return
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self._notify("notifications/progress", params)

    async def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Send a log message, if the client wants its level."""
        if level not in LOG_LEVELS:
            raise InvalidInput(f"there is no level {level!r:.40}", next=f"The levels are {', '.join(LOG_LEVELS)}.")
        if self.level is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(self.level):
            return
        named = {} if logger is None else {"logger": logger}
        await self._notify("notifications/message", {"level": level, **named, "data": data})
