from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import TooLarge
from holdfast.llm.sse import EventParser, ServerSentEvent

pytestmark = pytest.mark.req("AGENT-03")


def parsed(*parts: bytes) -> list[ServerSentEvent]:
    parser = EventParser()
    return [event for part in parts for event in parser.feed(part)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [ServerSentEvent("", b"a")]),
        (b"data:a\r\n\r\ndata:  b\r\n\r\n", [ServerSentEvent("", b"a"), ServerSentEvent("", b" b")]),
        (b"data: a\rdata: b\r\r", [ServerSentEvent("", b"a\nb")]),
        (b"event: ping\ndata: {}\n\ndata: x\n\n", [ServerSentEvent("ping", b"{}"), ServerSentEvent("", b"x")]),
        (b": comment\n\nid: 7\nretry: 10\ndata: a\n\n", [ServerSentEvent("", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent("", b"a")]),
        (b"data: a\xe2\x80\xa8b\x0bc\x85\n\n", [ServerSentEvent("", b"a\xe2\x80\xa8b\x0bc\x85")]),
        (b"event: lonely\n\ndata\n\n", [ServerSentEvent("", b"")]),
        (b"data: cut", []),
        (b"data: cut\n", []),
        (b"", []),
    ],
)
def test_a_stream_has_these_events(stream: bytes, events: list[ServerSentEvent]) -> None:
    assert parsed(stream) == events


@given(
    lines=st.lists(st.sampled_from([b"data: \xf0\x9f\x91\x8b", b"data:x", b"event: e", b": c", b"", b""]), max_size=12),
    ends=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_where_a_stream_is_cut_makes_no_difference(lines: list[bytes], ends: bytes, cuts: list[int]) -> None:
    stream = b"".join(line + ends for line in lines)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    parts = [stream[start:end] for start, end in pairwise(places)]

    assert parsed(*parts) == parsed(stream)


@pytest.mark.parametrize("line", [b"data: " + b"x" * 200, b"x" * 200, b"data: x\n" * 60, b": " + b"x" * 200])
def test_an_event_is_not_longer_than_allowed(line: bytes) -> None:
    parser = EventParser(limit=100)

    parts = (line[start : start + 7] for start in range(0, len(line), 7))

    with pytest.raises(TooLarge, match="more than 100 bytes"):
        _ = [event for part in parts for event in parser.feed(part)]


def test_an_event_that_comes_byte_by_byte_takes_time_by_its_length_alone() -> None:
    stream = b"data: " + b"x" * 500_000 + b"\n\n"

    events = parsed(*(stream[place : place + 1] for place in range(len(stream))))

    assert events == [ServerSentEvent("", b"x" * 500_000)]
