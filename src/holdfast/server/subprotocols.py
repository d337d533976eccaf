"""What goes over a socket: plain text, or JSON with everything that happens. Pure: text in, text out."""

from typing import Literal, Protocol
from uuid import UUID

import msgspec

from holdfast.agents import Event, Sent
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.text import parse, render
from holdfast.server.problems import problem_of

EVENTS = "holdfast.v1+json"


class SayFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="message"):
    """Something to say to the agent; to fork, another session has to be opened."""

    text: str
    key: str | None = None
    busy: Literal["enqueue", "merge", "reject", "interrupt"] = "enqueue"


class ApproveFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="approve"):
    """Allow a call."""

    approval_id: UUID
    comment: str = ""


class DenyFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="deny"):
    """Do not allow a call."""

    approval_id: UUID
    comment: str = ""


class CancelFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="cancel"):
    """Have a run stop."""

    run_id: UUID


class RetryFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="retry"):
    """Try a run again."""

    run_id: UUID


class PingFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ping"):
    """Ask whether somebody is there."""


Frame = SayFrame | ApproveFrame | DenyFrame | CancelFrame | RetryFrame | PingFrame


class Opened(msgspec.Struct, frozen=True, tag_field="kind", tag="ready"):
    """The first frame: where the client is."""

    session_id: str
    conversation_id: UUID
    agent: str
    cursor: str


class Taken(msgspec.Struct, frozen=True, tag_field="kind", tag="sent", omit_defaults=True):
    """A message is stored, and will be answered by this run."""

    run_id: UUID
    node_id: UUID
    key: str | None = None


class Queued(msgspec.Struct, frozen=True, tag_field="kind", tag="queued"):
    """Nobody serves the agent now: the message is kept, and answered by this run once somebody does."""

    run_id: UUID
    text: str


class Refused(msgspec.Struct, frozen=True, tag_field="kind", tag="refused", omit_defaults=True):
    """A frame was not taken; nothing came of it. `key` is that of the message."""

    code: str
    message: str
    next: str = ""
    key: str | None = None


class Subprotocol(Protocol):
    """How client and server speak; what is None is not said."""

    name: str | None

    def read(self, text: str) -> Frame:
        """What a client wants."""
        ...

    def ready(self, opened: Opened) -> str | None:
        """The greeting."""
        ...

    def told(self, event: Event) -> str | None:
        """Something that happened."""
        ...

    def sent(self, sent: Sent, key: str | None) -> str | None:
        """A message was stored."""
        ...

    def queued(self, queued: Queued) -> str | None:
        """A message waits for somebody to serve the agent."""
        ...

    def pong(self) -> str | None:
        """The answer to a ping."""
        ...

    def refused(self, error: HoldfastError, key: str | None) -> str:
        """A frame was not taken."""
        ...


class PlainText:
    """Every frame of the client is a message, every frame of the server an answer."""

    name: str | None = None

    def read(self, text: str) -> Frame:
        """All of it is the message."""
        return SayFrame(text)

    def ready(self, opened: Opened) -> str | None:
        """Nothing is said before the client speaks."""
        return None

    def told(self, event: Event) -> str | None:
        """Answers; and in plain words what a person has to know: that there is none, or that one has to decide."""
        match event.kind:
            case "answer" if event.version == 1:
                said = event.text
            case "error":
                said = f"The agent could not answer: {event.text}"
            case "approval":
                wanted = render(event.arguments).decode()
                said = (
                    f"The agent asks whether it may use {event.tool} with {wanted}. "
                    f"Decide with POST /api/approvals/{event.approval_id}, or in `holdfast chat`."
                )
            case _:
                return None
        return _whole(said) or None

    def sent(self, sent: Sent, key: str | None) -> str | None:
        """That it was stored shows by the answer."""
        return None

    def queued(self, queued: Queued) -> str | None:
        """In a sentence."""
        return _whole(queued.text)

    def pong(self) -> str | None:
        """There is no ping."""
        return None

    def refused(self, error: HoldfastError, key: str | None) -> str:
        """In a sentence."""
        return _whole(_detail(error)[1])


class Events:
    """JSON: typed events, and frames for all that a client may want."""

    name: str | None = EVENTS

    def read(self, text: str) -> Frame:
        """An object with a `type`."""
        try:
            return msgspec.convert(parse(text.encode(), limit=len(text) * 4), Frame)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise InvalidInput(
                "the frame does not fit",
                why=str(error),
                next="Send an object whose `type` is message, approve, deny, cancel, retry or ping.",
            ) from None

    def ready(self, opened: Opened) -> str | None:
        """Where the client is."""
        return render(opened).decode()

    def told(self, event: Event) -> str | None:
        """The event as it is."""
        return render(event).decode()

    def sent(self, sent: Sent, key: str | None) -> str | None:
        """With the run that answers it."""
        return render(Taken(sent.run_id, sent.node_id, key)).decode()

    def queued(self, queued: Queued) -> str | None:
        """With the run that will answer it."""
        return render(queued).decode()

    def pong(self) -> str | None:
        """Somebody is there."""
        return '{"kind":"pong"}'

    def refused(self, error: HoldfastError, key: str | None) -> str:
        """With the code that the same has everywhere."""
        code, message, next = _detail(error)
        return render(Refused(code, message, next, key)).decode()


def _detail(error: HoldfastError) -> tuple[str, str, str]:
    """What may be told of an error: its code, a sentence, and what to do."""
    problem = problem_of(error, instance="", request_id="")
    return problem.code, problem.detail, problem.next


def _whole(text: str) -> str:
    """Text without half characters, which a frame cannot carry."""
    return text.encode(errors="replace").decode()
