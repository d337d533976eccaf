import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.skills.uri_templates import MAX_URI, UriTemplate

ORDERS = UriTemplate("shop://orders/{order}/lines/{line}")


@pytest.mark.req("MCP-01")
@given(order=st.text(min_size=1, max_size=20), line=st.text(min_size=1, max_size=20))
def test_what_is_written_into_an_address_comes_out_of_it_or_not_at_all(order: str, line: str) -> None:
    values = {"order": order, "line": line}
    try:
        uri = ORDERS.expand(values)
    except UnicodeEncodeError:  # half a character
        return

    assert ORDERS.match(uri) in (values, None)
    assert "/" not in uri.removeprefix("shop://orders/").replace("/lines/", "", 1)


@pytest.mark.req("MCP-01")
@given(uri=st.text(max_size=30))
def test_no_address_leads_out_of_where_somebody_looks(uri: str) -> None:
    found = UriTemplate("shop://{path}").match(f"shop://{uri}")

    steps = found["path"].replace("\\", "/").split("/") if found else []
    assert ".." not in steps
    assert len(steps) < 2 or steps[0] != ""


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    "value",
    [
        "..",
        "%2e%2e",
        "a%2F..%2Fb",
        "%2Fetc%2Fpasswd",
        "..%5Cb",
        "C:%5Cb",
        "a%00b",
        "%ff",
        "~%2Fb",
        "a/b",
        "a?b",
        "",
        ".",
    ],
)
def test_a_value_that_could_lead_astray_is_no_value(value: str) -> None:
    assert UriTemplate("shop://{path}").match(f"shop://{value}") is None


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize("value", ["a", "a.b", "a..b", "%252e%252e", "a%2Fb", "...", "~", "a%20b", "ü"])
def test_a_plain_value_is_decoded_once(value: str) -> None:
    found = UriTemplate("shop://{path}").match(f"shop://{value}")

    assert found is not None
    assert found["path"] == {"%252e%252e": "%2e%2e", "a%2Fb": "a/b", "a%20b": "a b"}.get(value, value)


@pytest.mark.req("MCP-01")
def test_an_address_without_places_is_that_one_alone() -> None:
    fixed = UriTemplate("shop://hours.md")

    assert fixed.match("shop://hours.md") == {}
    assert fixed.match("shop://hoursxmd") is None
    assert fixed.match("shop://hours.md/") is None
    assert UriTemplate("shop://{a}").match("shop://" + "a" * MAX_URI) is None


@pytest.mark.req("MCP-01")
@pytest.mark.parametrize(
    "text",
    ["orders", "shop://{}", "shop://{a}{b}", "shop://{a}/{a}", "shop://{+a}", "shop://{a", "shop://a}", "x" * 3000],
)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        UriTemplate(text)
