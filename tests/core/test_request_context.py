"""The request context: parsing the trace of a request."""

import pytest

from holdfast.core.request_context import RequestContext, current_request, trace_id_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("header", "trace_id"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"cc-{TRACE}-00f067aa0ba902b7-01-later", TRACE),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", ""),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", ""),
        (f"00-{TRACE}-00f067aa0ba902b7", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_trace_id_is_read_from_a_valid_traceparent_only(header: str | None, trace_id: str) -> None:
    assert trace_id_of(header) == trace_id


def test_without_a_request_the_work_is_of_the_engine_itself() -> None:
    assert current_request() == RequestContext("engine")
