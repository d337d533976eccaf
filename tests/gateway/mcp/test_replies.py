"""Who can be asked for what, and what counts as an answer."""

from typing import Any

import pytest

from holdfast.gateway.mcp.replies import describe_mismatch, is_supported
from holdfast.mcp.inputs import Elicit, InputRequest, ListRoots, Sample

FORM = Elicit("Your name?", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
CONSENT = Elicit("Sure?", {"type": "object", "properties": {}})
MODEL = Sample([])
ROOTS = ListRoots()


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("capabilities", "request_", "expected"),
    [
        ({"elicitation": {}}, FORM, True),
        ({"elicitation": {"form": {}, "url": {}}}, FORM, True),
        ({"elicitation": {"url": {}}}, FORM, False),
        ({"elicitation": True}, FORM, False),
        ({"sampling": {}}, FORM, False),
        ({"sampling": {}}, MODEL, True),
        ({"roots": {"listChanged": True}}, ROOTS, True),
        ({}, ROOTS, False),
    ],
)
def test_only_what_a_client_has_declared_is_asked_of_it(
    capabilities: dict[str, Any], request_: InputRequest, expected: bool
) -> None:
    assert is_supported(capabilities, request_) is expected


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (FORM, {"action": "accept", "content": {"name": "Ann"}}),
        (FORM, {"action": "decline"}),
        (FORM, {"action": "cancel"}),
        (CONSENT, {"action": "accept"}),
        (MODEL, {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}),
        (MODEL, {"role": "assistant", "model": "m", "content": []}),
        (ROOTS, {"roots": [{"uri": "file:///a"}]}),
        (ROOTS, {"roots": []}),
    ],
)
def test_an_answer_to_what_was_asked_fits(request_: InputRequest, answer: dict[str, Any]) -> None:
    assert describe_mismatch(request_, answer) == ""


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    ("request_", "answer", "why"),
    [
        (FORM, {}, "action"),
        (FORM, {"action": "yes"}, "action"),
        (FORM, {"action": "accept"}, "name"),
        (FORM, {"action": "accept", "content": {"name": 7}}, "name"),
        (FORM, {"action": "accept", "content": ["Ann"]}, "object"),
        (FORM, {"roots": []}, "action"),
        (MODEL, {"action": "accept"}, "role"),
        (MODEL, {"role": "assistant", "model": "m", "content": "yes"}, "content"),
        (ROOTS, {"roots": [{"name": "a"}]}, "uri"),
        (ROOTS, {"roots": "file:///a"}, "uri"),
    ],
)
def test_what_is_no_answer_to_what_was_asked_is_told_why(
    request_: InputRequest, answer: dict[str, Any], why: str
) -> None:
    assert why in describe_mismatch(request_, answer)
