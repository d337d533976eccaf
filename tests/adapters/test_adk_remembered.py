"""What of ADK's events is remembered."""

from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai.types import Content, FunctionCall, FunctionResponse, Part, Transcription

from holdfast.adapters.adk_memory import MAX_PIECE, drafts_of
from holdfast.memory.drafts import MAX_CONTENT_BYTES
from tests.adapters.adk_events import said

pytestmark = pytest.mark.req("ADK-02")


def event(*parts: Part, author: str = "support", **more: Any) -> Event:
    return Event(author=author, content=Content(role="model", parts=list(parts)), **more)


NOTHING_SAID = [
    Event(author="support"),
    Event(author="support", error_code="429", error_message="slow down"),
    Event(author="support", content=Content(role="model")),
    event(Part(text="")),
    event(Part(text=" \n")),
    event(Part(text="hm", thought=True)),
    event(Part(function_call=FunctionCall(name="track", args={"parcel": 7}))),
    event(Part(function_response=FunctionResponse(name="track", response={"place": "Rome"}))),
    event(Part.from_bytes(data=b"png", mime_type="image/png")),
    event(Part(text="It is"), partial=True),
    Event(author="user", input_transcription=Transcription(text="I am", finished=False)),
]
SAID = [
    (event(Part(text="hm", thought=True), Part(text="It is in "), Part(text="Rome.")), "It is in Rome."),
    (event(Part(text="Look:"), Part(text="a parcel."), author="user"), "Look: a parcel."),
    (event(Part(text="Let me see."), Part(function_call=FunctionCall(name="track"))), "Let me see."),
    (Event(author="user", input_transcription=Transcription(text="spoken", finished=True)), "spoken"),
]


@pytest.mark.parametrize("event", NOTHING_SAID)
def test_an_event_that_says_nothing_is_no_memory(event: Event) -> None:
    assert list(drafts_of([event], "shop", "web-42", {})) == []


@pytest.mark.parametrize(("event", "text"), SAID)
def test_what_an_event_says_is_the_memory(event: Event, text: str) -> None:
    assert [draft.content for draft in drafts_of([event], "shop", "web-42", {})] == [text]


@pytest.mark.parametrize("text", ["x" * 100_000, "\0" * 20_000, "字" * 30_000, "\ud83d" * 20_000])
def test_a_text_without_spaces_is_cut_where_it_must_be(text: str) -> None:
    pieces = [draft.content for draft in drafts_of([said(text, author="user")], "shop", "web-42", {})]

    assert "".join(pieces) == text
    assert {len(piece) for piece in pieces[:-1]} == {MAX_PIECE}


def test_a_text_that_just_fits_is_one_memory() -> None:
    drafts = list(drafts_of([said("x" * MAX_CONTENT_BYTES)], "shop", "web-42", {}))

    assert len(drafts) == 1
