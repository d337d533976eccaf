"""Assembles a streamed answer: tool calls arrive in pieces, and are complete when the stream ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.ids import uuid7
from holdfast.core.text import render
from holdfast.llm.model import CallPiece, Piece, Stop, StopReason, TokenUsage, ToolCall


@dataclass(slots=True)
class PartialCall:
    """A tool call of which a part has arrived."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])

    def add(self, id: str, name: str, arguments: object) -> None:
        """Add a piece. Some servers repeat the id and the name in every piece."""
        self.id = self.id or id
        if name != self.name:
            self.name += name
        if isinstance(arguments, str):
            self.pieces.append(arguments)
        elif arguments is not None:
            self.pieces.append(render(arguments).decode())

    @property
    def arguments(self) -> str:
        """The arguments so far. A tool without parameters may be called with none."""
        return "".join(self.pieces)

    def is_whole(self) -> bool:
        """Whether the arguments are a JSON object, and thus complete."""
        return ToolCall("", "", self.arguments).object() is not None

    def is_followed(self, id: str, name: str, arguments: object) -> bool:
        """Whether a piece belongs to another call, as far as can be seen without an index."""
        if id and self.id:
            return id != self.id
        begins = not isinstance(arguments, str) or arguments.lstrip().startswith("{")
        return bool(name) and begins and self._ends()

    def _ends(self) -> bool:
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}")


class Assembly:
    """Collects the parts of an answer besides its text."""

    def __init__(self, model: str) -> None:
        self.usage: TokenUsage | None = None
        self.reason: StopReason | None = None
        self.calls: list[PartialCall] = []
        self._model = model

    def end(self) -> Iterator[Piece]:
        """Yield the pieces that end the answer.

        A call that the token limit cut off is dropped: the rest of it could be taken for another call.
        """
        reason = self.reason or "end"
        whole = [call for call in self.calls if call.name and (reason != "length" or call.is_whole())]
        taken: set[str] = set()
        for call in whole:
            id = call.id if call.id and call.id not in taken else f"call_{uuid7().hex}"
            taken.add(id)
            yield CallPiece(ToolCall(id, call.name, call.arguments.strip() or "{}"))
        if self.usage is not None:
            yield self.usage
        if reason in ("end", "tools"):
            reason = "tools" if whole else "end"
        yield Stop(reason, self._model)


def tokens(fields: dict[str, Any], name: str) -> int:
    """Return a count of a usage object; 0 if it is missing or invalid."""
    value = fields.get(name)
    return value if type(value) is int and value >= 0 else 0
