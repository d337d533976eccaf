"""`holdfast chat`: chat with an agent in the terminal."""

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from holdfast.cli.api import error_of
from holdfast.cli.chat_commands import ChatPlace, Switch, recap, run_command
from holdfast.cli.chat_loop import INTERRUPTED, SILENT, ChatLoop, line_editing
from holdfast.cli.chat_output import AnswerAlone, JsonLines, Screen, Terminal, format_call, in_colour
from holdfast.cli.chat_socket import Frame
from holdfast.cli.invocation import Invocation, command, single
from holdfast.core.errors import Conflict, Forbidden, HoldfastError, InvalidInput, NotFound, Unavailable

PROMPT = "> "
YES = ("y", "yes")

app = single()


@command(app)
def chat(
    invocation: Invocation,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="AGENT", help="Agent to chat with. [default: the only served agent, else `default`]"),
    ] = None,
    message: Annotated[
        list[str] | None,
        typer.Argument(metavar="MESSAGE", help="Send this message, print the answer and exit.", show_default=False),
    ] = None,
    go_on: Annotated[bool, typer.Option("-c", "--continue", help="Continue the last session.")] = False,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Session to chat in. [default: a new session]")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="User to chat as. [default: yourself]")] = None,
) -> None:
    """Chat with an agent. Ctrl-C stops its answer, Ctrl-D exits.

    In a terminal, /help lists the chat commands, such as /new, /sessions and /agent. With a message, as an argument or
    on stdin, only the answer goes to stdout. With --json, every event goes to stdout as a line of JSON.

    \b
    holdfast chat
    holdfast chat support -c
    holdfast chat "What can you do?"
    holdfast chat support "Where is the parcel AB-1?"
    """
    if go_on and session is not None:
        raise InvalidInput("it is not clear which session is meant", next="Give either -c or --session.")
    if agent is not None and " " in agent:  # names of agents have no spaces: it is the message
        agent, message = None, [agent, *(message or [])]
    question = _question(invocation, message)
    if question is None:
        with line_editing(invocation.config().data / "chat_history"):
            _chat_in_sessions(invocation, agent, user=user, session=session, go_on=go_on)
        return
    with (
        ChatLoop(invocation, agent, user=user, session=session, go_on=go_on) as chat_loop,
        _interrupts(chat_loop.interrupt),
    ):
        invocation.output.line(chat_loop.wait_until_ready())
        _ask_once(invocation, chat_loop, question)


def _question(invocation: Invocation, message: list[str] | None) -> str | None:
    """Return the only message to send, or None for an interactive chat."""
    if message:
        question = " ".join(message)
    elif sys.stdin.isatty() and not invocation.json:
        return None
    else:
        question = sys.stdin.buffer.read().decode(errors="replace").removesuffix("\n")
    if not question.strip():
        raise InvalidInput("the message is empty", next="Give a text.")
    return question


def _chat_in_sessions(
    invocation: Invocation, agent: str | None, *, user: str | None, session: str | None, go_on: bool
) -> None:
    """Chat in one session after another until the user exits."""
    while True:
        chat_loop = ChatLoop(invocation, agent, user=user, session=session, go_on=go_on)
        with chat_loop, _interrupts(chat_loop.interrupt):
            switch = _chat_in_session(
                invocation, chat_loop, chat_loop.wait_until_ready(), user, show_recap=go_on or session is not None
            )
        if switch is None:
            return
        agent, session, go_on = switch.agent, switch.session, False


def _chat_in_session(
    invocation: Invocation, chat_loop: ChatLoop, ready: Frame, user: str | None, *, show_recap: bool
) -> Switch | None:
    """Chat in one session. Return the session to switch to, or None if the user exits."""
    screen = Terminal(sys.stdout, colour=in_colour(sys.stdout))
    place = ChatPlace(ready["agent"], ready["session_id"], user)
    invocation.output.say(f"Chat with {place.agent}. Ctrl-C stops an answer, Ctrl-D exits, /help lists commands.")
    for line in chat_loop.call(lambda api: recap(api, ready["conversation_id"])) if show_recap else ():
        screen.remark(line)
    turns = _Turns(chat_loop, screen, can_approve=True)
    while (text := _read(PROMPT)) is not None:
        if text.startswith("/") and not text.startswith("//"):
            result = _run_command(chat_loop, text, place)
            if isinstance(result, Switch):
                return result
            screen.remark(result)
        elif text.strip():
            ended = turns.turn(text.removeprefix("/") if text.startswith("//") else text)
            if ended["kind"] == "refused":
                screen.remark(f"({_error(ended)})")
            elif ended["kind"] == "queued":
                continue
            elif recalled := chat_loop.count_recalled():
                screen.remark(f"({recalled} {'memory' if recalled == 1 else 'memories'} recalled)")
    return None


def _run_command(chat_loop: ChatLoop, text: str, place: ChatPlace) -> str | Switch:
    try:
        return chat_loop.call(lambda api: run_command(api, text, place))
    except HoldfastError as error:
        return f"({error})"


def _ask_once(invocation: Invocation, chat_loop: ChatLoop, question: str) -> None:
    screen: Screen = JsonLines(sys.stdout) if invocation.json else AnswerAlone(sys.stdout, sys.stderr)
    turns = _Turns(chat_loop, screen, can_approve=sys.stdin.isatty() and not invocation.json)
    ended = turns.turn(question)
    if turns.stopped:
        raise KeyboardInterrupt
    if ended["kind"] == "queued":
        raise Unavailable(ended["text"], run_id=ended["run_id"])
    if ended["kind"] != "done":
        raise _error(ended)
    if ended.get("state") != "done":
        raise HoldfastError("the answer was cancelled", next="Ask again.", run_id=ended.get("run_id"))


class _Turns:
    """Sends messages and shows the events of their turns."""

    def __init__(self, chat_loop: ChatLoop, screen: Screen, *, can_approve: bool) -> None:
        self._chat_loop = chat_loop
        self._screen = screen
        self._can_approve = can_approve  # a person can decide approvals here
        self.stopped = False

    def turn(self, text: str) -> Frame:
        """Send a message and return the frame that ended its turn."""
        self._chat_loop.say(text)
        self.stopped = False
        while True:
            frame = self._chat_loop.next()
            if frame is INTERRUPTED:
                self._stop()
                continue
            if frame is SILENT:
                self._screen.remark("(Nobody has taken it up yet. An agent is served by `holdfast up APP`.)")
                continue
            self._screen.show(frame)
            if (
                frame["kind"] == "approval"
                and not self.stopped
                and (self._can_approve or self._chat_loop.is_ours(frame))
            ):
                self._approve(frame)
            if self._chat_loop.ends(frame):
                return frame

    def _stop(self) -> None:
        """Cancel the run. A second interrupt does not wait for that."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True
        self._screen.remark("(stopping)")
        self._chat_loop.cancel()

    def _approve(self, frame: Frame) -> None:
        """Ask the user whether a tool call may run."""
        if not self._can_approve:
            raise Forbidden(
                f"{format_call(frame)} waits for approval",
                next=f"Approve it with `holdfast approvals approve {frame['approval_id']}`, or deny it.",
                approval_id=frame["approval_id"],
                run_id=frame.get("run_id"),
            )
        again = " again; it may have run before" if frame.get("reason") == "unknown" else ""
        self._screen.remark(f"? {format_call(frame)}{again}")
        try:
            answer = _read("Allow it? [y/N] ", interrupt=True)
        except KeyboardInterrupt:
            self._stop()
            return
        try:
            self._chat_loop.decide(frame["approval_id"], "approve" if (answer or "").strip().lower() in YES else "deny")
        except (Conflict, NotFound) as error:  # somebody else has decided, or the turn was stopped
            self._screen.remark(f"({error})")


def _read(prompt: str, *, interrupt: bool = False) -> str | None:
    """Read a line from the terminal; None on Ctrl-D. Ctrl-C returns None, or raises if `interrupt` is set."""
    try:
        with _handler(signal.default_int_handler):
            return input(prompt)
    except EOFError:
        sys.stdout.write("\n")
        return None
    except KeyboardInterrupt:
        sys.stdout.write("\n")
        if interrupt:
            raise
        return None


@contextmanager
def _interrupts(notify: Callable[[], None]) -> Generator[None]:
    """Call `notify` on Ctrl-C instead of raising KeyboardInterrupt."""

    def handler(number: int, frame: object) -> None:
        notify()

    with _handler(handler):
        yield


@contextmanager
def _handler(handler: Any) -> Generator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _error(ended: Frame) -> HoldfastError:
    """Return the error that ended a turn or refused a message."""
    fields: Frame = ended.get("error") or {"code": ended.get("code", "failed"), "what": ended.get("message", "")}
    return error_of({"what": fields.get("message", ""), "next": ended.get("next", ""), **fields})
