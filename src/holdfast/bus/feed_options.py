"""The options of a consumer."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from holdfast.postgres.listener import Wake

Start = Literal["start", "end"]
Listen = Callable[..., AbstractAsyncContextManager[Wake]]


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """The options of a feed: its topics, where a new group starts, the size of a batch, and the lease of a member.

    `known_locally`: the reader learns by other means what this process announces with `known_locally`.
    """

    topics: tuple[str, ...]
    start: Start
    batch: int
    batch_bytes: int
    lease: timedelta
    known_locally: bool = False
