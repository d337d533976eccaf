"""The sub-protocols of a WebSocket: plain text, or JSON with all events. Pure: text in, text out."""

from typing import Any, Literal, Protocol
from uuid import UUID

import msgspec

from holdfast.agents import Event, Sent
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.text import parse, render
from holdfast.server.problems import Problem, problem_of

EVENTS = "holdfast.v1+json"


class SayFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="message"):
    """A message to the agent. The policy `fork` is not available here: open another session instead."""

    text: str
    key: str | None = None
    busy: Literal["enqueue", "merge", "reject", "interrupt"] = "enqueue"


class ApproveFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="approve"):
    """Approve a tool call."""

    approval_id: UUID
    comment: str = ""


class DenyFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="deny"):
    """Deny a tool call."""

    approval_id: UUID
    comment: str = ""


class CancelFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="cancel"):
    """Cancel a run."""

    run_id: UUID


class RetryFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="retry"):
    """Retry a run."""

    run_id: UUID


class PingFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ping"):
    """Check whether the server responds."""


Frame = SayFrame | ApproveFrame | DenyFrame | CancelFrame | RetryFrame | PingFrame


class ReadyFrame(msgspec.Struct, frozen=True, tag_field="kind", tag="ready"):
    """The first frame: the session, the conversation, the agent, and the cursor from which events follow."""

    session_id: str
    conversation_id: UUID
    agent: str
    cursor: str


class SentFrame(msgspec.Struct, frozen=True, tag_field="kind", tag="sent", omit_defaults=True):
    """A message was stored. The run answers it."""

    run_id: UUID
    node_id: UUID
    key: str | None = None


class QueuedFrame(msgspec.Struct, frozen=True, tag_field="kind", tag="queued"):
    """No process serves the agent now. The message is stored, and the run answers it when a process does."""

    run_id: UUID
    text: str


class RefusedFrame(msgspec.Struct, frozen=True, tag_field="kind", tag="refused", omit_defaults=True):
    """A frame was refused and had no effect. `key` is the key of the message, `details` are those of the error."""

    code: str
    message: str
    next: str = ""
    key: str | None = None
    details: dict[str, Any] = {}


class Subprotocol(Protocol):
    """Decodes the client's frames and encodes the server's. A method that returns None sends no frame."""

    name: str | None

    def read(self, text: str) -> Frame:
        """Decode a frame of the client."""
        ...

    def encode_ready(self, opened: ReadyFrame) -> str | None:
        """Encode the first frame."""
        ...

    def encode_event(self, event: Event) -> str | None:
        """Encode an event."""
        ...

    def encode_sent(self, sent: Sent, key: str | None) -> str | None:
        """Encode the confirmation that a message was stored."""
        ...

    def encode_queued(self, queued: QueuedFrame) -> str | None:
        """Encode the notice that a message waits until a process serves the agent."""
        ...

    def encode_pong(self) -> str | None:
        """Encode the answer to a ping."""
        ...

    def encode_refusal(self, error: HoldfastError, key: str | None) -> str:
        """Encode the refusal of a frame."""
        ...


class PlainText:
    """Plain text: each frame of the client is a message, and each frame of the server is an answer or a notice."""

    name: str | None = None

    def read(self, text: str) -> Frame:
        """Return the whole text as a message."""
        return SayFrame(text)

    def encode_ready(self, opened: ReadyFrame) -> str | None:
        """Send nothing."""
        return None

    def encode_event(self, event: Event) -> str | None:
        """Return the answer; for an error or an approval, a sentence. Other events are not sent."""
        match event.kind:
            case "answer" if event.version == 1:
                text = event.text
            case "error":
                text = f"The agent could not answer: {event.text}"
            case "approval":
                arguments = render(event.arguments).decode()
                text = (
                    f"The agent asks whether it may use {event.tool} with {arguments}. "
                    f"Decide with POST /api/approvals/{event.approval_id}, or in `holdfast chat`."
                )
            case _:
                return None
        return _replace_surrogates(text) or None

    def encode_sent(self, sent: Sent, key: str | None) -> str | None:
        """Send nothing."""
        return None

    def encode_queued(self, queued: QueuedFrame) -> str | None:
        """Return a sentence."""
        return _replace_surrogates(queued.text)

    def encode_pong(self) -> str | None:
        """Send nothing: there is no ping in plain text."""
        return None

    def encode_refusal(self, error: HoldfastError, key: str | None) -> str:
        """Return the error in sentences."""
        return _replace_surrogates(_public(error).detail)


class Events:
    """JSON: typed events, and frames for messages, approvals, cancellation, retry and ping."""

    name: str | None = EVENTS

    def read(self, text: str) -> Frame:
        """Decode an object with a `type`."""
        try:
            return msgspec.convert(parse(text.encode(), limit=len(text) * 4), Frame)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise InvalidInput(
                "the frame is invalid",
                why=str(error),
                next="Send an object whose `type` is message, approve, deny, cancel, retry or ping.",
            ) from None

    def encode_ready(self, opened: ReadyFrame) -> str | None:
        """Return the first frame as JSON."""
        return render(opened).decode()

    def encode_event(self, event: Event) -> str | None:
        """Return the event as JSON."""
        return render(event).decode()

    def encode_sent(self, sent: Sent, key: str | None) -> str | None:
        """Return the run that answers the message, as JSON."""
        return render(SentFrame(sent.run_id, sent.node_id, key)).decode()

    def encode_queued(self, queued: QueuedFrame) -> str | None:
        """Return the run that will answer the message, as JSON."""
        return render(queued).decode()

    def encode_pong(self) -> str | None:
        """Return a pong."""
        return '{"kind":"pong"}'

    def encode_refusal(self, error: HoldfastError, key: str | None) -> str:
        """Return the error as JSON, with the same code as in the HTTP API."""
        public = _public(error)
        return render(RefusedFrame(public.code, public.detail, public.next, key, public.details)).decode()


def _public(error: HoldfastError) -> Problem:
    """Return the public part of an error."""
    return problem_of(error, instance="", request_id="")


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which a frame cannot contain."""
    return text.encode(errors="replace").decode()
