"""Receives one answer of a model: enforces its time-outs, and passes on each piece."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from holdfast.core.errors import ModelFailed
from holdfast.llm.model import (
    CallPiece,
    Model,
    ModelRequest,
    Piece,
    Shown,
    Stop,
    TextPiece,
    ThinkingPiece,
    TokenUsage,
    ToolCall,
    WritingPiece,
)

MAX_SIZE = 4 * 1024 * 1024  # characters of an answer


@dataclass(frozen=True, slots=True)
class AnswerTimeouts:
    """Time-outs of an answer: seconds for the first piece and between pieces, and the deadline for the last."""

    first: float
    between: float
    deadline: float

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return self.deadline - time.monotonic()


class PieceForwarder:
    """Passes pieces on to the caller, and remembers whether the caller has received any."""

    def __init__(self, on_piece: Callable[[Shown], None] | None, on_restart: Callable[[], None] | None) -> None:
        self._on_piece = on_piece
        self._on_restart = on_restart
        self._is_out = False

    def give(self, piece: Shown) -> None:
        """Pass on a piece."""
        if self._on_piece is not None:
            self._is_out = True
            self._on_piece(piece)

    def may_restart(self) -> bool:
        """Whether the answer may start again. If the caller has pieces of the old one, call `on_restart` first."""
        if self._is_out:
            if self._on_restart is None:
                return False
            self._on_restart()
            self._is_out = False
        return True


class AnswerStream:
    """The part of an answer that has arrived."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.usage: TokenUsage | None = None
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(self._text)

    @property
    def thinking(self) -> str:
        """The reasoning of the model."""
        return "".join(self._thinking)

    async def receive(
        self, model: Model, request: ModelRequest, forwarder: PieceForwarder, timeouts: AnswerTimeouts
    ) -> Stop:
        """Receive the answer to its end."""
        limit = timeouts.first
        async with aclosing(model.stream(request)) as pieces:
            while True:
                try:
                    async with asyncio.timeout(min(limit, timeouts.left())):
                        piece = await anext(pieces)
                except TimeoutError:
                    raise _timeout_failure(model.name, limit, timeouts) from None
                except StopAsyncIteration:
                    raise _failure(
                        model.name, "broke off its answer", "the stream ended without a stop reason", retryable=True
                    ) from None
                if isinstance(piece, Stop):
                    return piece
                self._take(piece, forwarder)
                if self._size > MAX_SIZE:
                    raise _failure(
                        model.name, "sent an answer that is too long", f"it has more than {MAX_SIZE} characters"
                    )
                limit = timeouts.between

    def _take(self, piece: Piece, forwarder: PieceForwarder) -> None:
        match piece:
            case TextPiece(text):
                self._text.append(text)
                self._size += len(text)
                forwarder.give(piece)
            case ThinkingPiece(text):
                self._thinking.append(text)
                self._size += len(text)
                forwarder.give(piece)
            case CallPiece(call):
                self.calls.append(call)
                self._size += len(call.arguments)
                forwarder.give(piece)
            case TokenUsage():
                self.usage = piece
            case WritingPiece() | Stop():
                pass


def _timeout_failure(model: str, limit: float, timeouts: AnswerTimeouts) -> ModelFailed:
    if timeouts.left() <= 0:
        what, setting = "did not finish its answer in time", "llm.timeout"
    elif limit == timeouts.first:
        what, setting = f"did not start to answer within {limit:g} s", "llm.first_token_timeout"
    else:
        what, setting = f"sent nothing for {limit:g} s", "llm.token_timeout"
    return _failure(model, what, retryable=True, next=f"Try again, or raise {setting}.")


def _failure(model: str, what: str, why: str = "", *, retryable: bool = False, next: str = "") -> ModelFailed:
    return ModelFailed(f"the model {model} {what}", model=model, retryable=retryable, why=why, next=next)
