"""How a consumer reads."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from holdfast.postgres.listener import Wake

Start = Literal["start", "end"]
Listen = Callable[..., AbstractAsyncContextManager[Wake]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a feed reads: topics, where a new group starts, and how much it holds at once.

    `told`: whoever reads is told by other means what this process announces so.
    """

    topics: tuple[str, ...]
    start: Start
    batch: int
    batch_bytes: int
    lease: timedelta
    told: bool = False
