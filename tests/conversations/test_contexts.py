import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.conversations.contexts import (
    BY_SYSTEM,
    BY_TOOL,
    MAX_VALUE,
    Context,
    by_agent,
    by_user,
    parse_context,
)
from holdfast.conversations.payloads import Role, role_of
from holdfast.core.errors import InvalidInput

pytestmark = pytest.mark.req("CONV-02")

BAD = ["", "text", "text:user", "text:user:", "::", "Text:user:ann", "text:User:ann", "1:user:ann", "te xt:user:ann"]


@given(st.text(min_size=1, max_size=MAX_VALUE))
def test_a_value_may_be_any_text(value: str) -> None:
    context = parse_context(f"text:agent:{value}")

    assert context == ("text", "agent", value)
    assert parse_context(str(context)) == context


@pytest.mark.parametrize("text", [*BAD, f"text:user:{'x' * (MAX_VALUE + 1)}", f"{'t' * 64}:user:ann"])
def test_a_text_of_another_form_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="Write it like `text:user:ann`"):
        parse_context(text)


@pytest.mark.parametrize("context", [Context("", "", ""), Context("Text", "user", "ann"), by_user("x" * 2001)])
def test_a_context_that_was_put_together_is_checked_as_a_written_one(context: Context) -> None:
    with pytest.raises(InvalidInput):
        parse_context(context)


@pytest.mark.parametrize(
    ("context", "written", "role"),
    [
        (by_user("ann"), "text:user:ann", "user"),
        (by_user(None), "text:user:user", "user"),
        (by_agent("support"), "text:agent:support", "assistant"),
        (by_agent(""), "text:agent:assistant", "assistant"),
        (BY_TOOL, "text:agent:tool", "tool"),
        (BY_SYSTEM, "text:system:system", "system"),
        (Context("text", "section", "book"), "text:section:book", "user"),
    ],
)
def test_who_speaks_is_told_by_the_context_unless_the_payload_says_otherwise(
    context: Context, written: str, role: Role
) -> None:
    assert str(context) == written
    assert role_of(context, None) == role_of(context, {"own": 1}) == role
    assert role_of(context, {"role": "system"}) == "system"


def test_a_root_has_no_context() -> None:
    assert not str(Context("", "", ""))
