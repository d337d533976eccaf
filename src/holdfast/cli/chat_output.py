"""Output formats of a chat: for a person at a terminal, only the answer, or JSON lines."""

import json
import os
from typing import Any, Protocol, TextIO, cast

from holdfast.cli.chat_socket import Frame
from holdfast.cli.markdown import MarkdownStream
from holdfast.cli.output import printable, write

SHOWN = 200  # characters of arguments and results of tools
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Screen(Protocol):
    """Shows the frames of a chat."""

    def show(self, frame: Frame) -> None:
        """Show a frame, unless this format omits it."""
        ...

    def remark(self, words: str) -> None:
        """Print a message that is not part of the chat."""
        ...


class Terminal:
    """For a person: the agent's text as it streams, and its actions on separate dim lines.

    In colour, the agent's text is rendered as Markdown.
    """

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._stream = stream
        self._colour = colour
        self._markdown = MarkdownStream(stream) if colour else None
        self._written = ""  # the part of the agent's text that is written
        self._line = ""  # the current line, or lines

    def show(self, frame: Frame) -> None:
        """Show a frame, unless this format omits it."""
        text: str = frame.get("text", "")
        match frame["kind"]:
            case "token":
                if frame.get("reset") and self._written:
                    self.remark("(it begins anew)")
                    self._written = ""
                self._write(text)
                self._written += text
            case "thought" | "answer" if frame.get("version", 1) == 1:
                self._complete(text)
            case "action":
                self.remark(f"→ {format_call(frame)}")
            case "observation":
                self.remark(f"← {'failed: ' if frame.get('failed') else ''}{shortened(text)}")
            case "decision" if frame.get("decision") != "withdrawn":
                self.remark(f"{frame['tool']} was {frame['decision']}")
            case "done" if frame.get("state") == "cancelled":
                self.remark("(stopped)")
            case "error":
                self.remark(f"(failed: {text})")
            case "queued":
                self.remark(f"({text})")
            case "lost":
                self.remark("(the connection broke, trying again)")
            case "found":
                self.remark("(connected again)")
            case _:
                return

    def remark(self, words: str) -> None:
        """Print a message that is not part of the chat, on a separate line."""
        self._end_line()
        words = printable(words)
        write(self._stream, f"{DIM}{words}{PLAIN}" if self._colour else words)

    def _complete(self, text: str) -> None:
        """Write the rest of the agent's text. If other text came in between, write all of it."""
        if not text.startswith(self._written):
            self._end_line()
            self._written = ""
        self._write(text[len(self._written) :])
        self._end_line()
        self._written = ""

    def _write(self, text: str) -> None:
        if not text:
            return
        self._line += text
        if self._markdown is not None:
            self._markdown.feed(text)
            return
        self._stream.write(printable(text.replace("\r\n", "\n")))
        self._stream.flush()

    def _end_line(self) -> None:
        if self._line and self._markdown is not None:
            self._markdown.end()
        elif self._line and not self._line.endswith("\n"):
            write(self._stream, "")
        self._line = ""


class AnswerAlone:
    """For programs: only the answer, when it is complete. Remarks go to stderr."""

    def __init__(self, stream: TextIO, remarks: TextIO) -> None:
        self._stream = stream
        self._remarks = remarks
        self._run: str | None = None  # the run that answers the message

    def show(self, frame: Frame) -> None:
        """Show the answer."""
        match frame["kind"]:
            case "sent":
                self._run = frame["run_id"]
            case "answer" if frame["run_id"] == self._run and frame.get("version", 1) == 1:
                text = frame.get("text", "")
                write(self._stream, printable(text.replace("\r\n", "\n")) if self._stream.isatty() else text)
            case "lost":
                self.remark("The connection broke, trying again.")
            case _:
                return

    def remark(self, words: str) -> None:
        """Print a message that is not part of the chat."""
        write(self._remarks, printable(words))


class JsonLines:
    """For programs: every frame as a line of JSON."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, frame: Frame) -> None:
        """Write the frame."""
        write(self._stream, json.dumps(frame))

    def remark(self, words: str) -> None:
        """Ignore the message: the output is JSON only."""


def format_call(frame: Frame) -> str:
    """Format a tool call: `track(parcel=AB-1)`."""
    given: Any = frame.get("arguments")
    if isinstance(given, dict):
        inner = ", ".join(f"{name}={_value(value)}" for name, value in cast(dict[str, Any], given).items())
    else:
        inner = "" if given is None else _value(given)
    return f"{frame['tool']}({shortened(inner)})"


def shortened(text: str) -> str:
    """Shorten a text to the beginning, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[:SHOWN] + "…"


def in_colour(stream: TextIO) -> bool:
    """Return whether the stream supports colours and the user has not disabled them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
