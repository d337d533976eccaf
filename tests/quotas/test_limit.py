"""The text of limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.quotas.limit import SCOPES, Scope, UsageLimit, name_of, parse_limit
from holdfast.quotas.limit_index import Subject

pytestmark = pytest.mark.req("MCP-07")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("each user: 60 requests per minute", "each user: 60 requests per minute"),
        ("user ann: 1_000 requests a day, burst 50", "user ann: 1000 requests per day, burst 50"),
        (
            "each user of tool refund: 10 requests an hour burst 3",
            "each user of tool refund: 10 requests per hour, burst 3",
        ),
        ("tool refund of each user: 10 requests per hour", "each user of tool refund: 10 requests per hour"),
        ("tenant: 2.50 cost per month warn at 90%", "tenant: 2.5 cost per month, warn at 90%"),
        ("agent support: 100000 tokens per day", "agent support: 100000 tokens per day"),
        ("tool search: 5 concurrent", "tool search: 5 concurrent calls"),
        ('user "ann: of, \\"7\\"": 1 request per second', 'user "ann: of, \\"7\\"": 1 requests per second'),
        ("user shop:ann: 1 requests per second", "user shop:ann: 1 requests per second"),
        ("user each: 1 requests per second", "user each: 1 requests per second"),
    ],
)
def test_a_limit_is_read_and_written_as_a_text(text: str, rule: str) -> None:
    limit = parse_limit(text)

    assert limit.rule == rule
    assert parse_limit(limit.rule) == limit


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "whom it is for is missing"),
        ("each user", "a colon is missing"),
        ("each group: 1 requests per hour", "'group' is not"),
        ("user ann of user bob: 1 requests per hour", "names the user twice"),
        ("each user: many requests per hour", "'many' is not an amount"),
        ("each user: 0 requests per hour", "above 0"),
        ("each user: 1.5 requests per hour", "not whole"),
        ("each user: 1 calls per hour", "'calls' is not"),
        ("each user: 1 requests", "`per` and a time is missing"),
        ("each user: 1 requests per week", "'week' is not second, minute, hour, day, month"),
        ("each user: 1 requests per hour, warn at 80%", "only limits on tokens"),
        ("each user: 1 tokens per hour, burst 2", "only limits on requests"),
        ("each user: 1 tokens per hour, warn at 180%", "1% to 100%"),
        ("each user: 1 tokens per hour, warn at 9_%", "1% to 100%"),
        ("each user: 1 cost per second", "per minute, hour, day or month"),
        ("tool refund: 1 cost per day", "have no tool"),
        ("each key: 1 tokens per day", "have no key"),
        ("each user: 1 concurrent calls per day", "'per' is not"),
        ('user "": 1 requests per day', "the name of the user is empty"),
        ('user "ann: 1 requests per day', "cannot be read"),
        ("x" * 2000, "2000 characters"),
    ],
)
def test_a_text_that_is_no_limit_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_limit(text)

    assert why in refused.value.why


@given(
    names=st.dictionaries(st.sampled_from(SCOPES), st.one_of(st.none(), st.text(min_size=1, max_size=20))),
    amount=st.integers(1, 10**9),
)
def test_every_name_survives_the_text(names: dict[Scope, str | None], amount: int) -> None:
    subject: Subject = tuple((scope, names[scope]) for scope in SCOPES if scope in names)
    limit = UsageLimit(subject, "requests", amount, "hour")

    assert parse_limit(limit.rule) == limit


def test_a_limit_has_the_name_of_those_that_differ_only_in_their_numbers() -> None:
    limits = [
        parse_limit("each user: 60 requests per minute"),
        parse_limit("each user: 5 requests per minute, burst 9"),
    ]

    assert {limit.name for limit in limits} == {"each user: requests per minute"}
    assert name_of("each user: 60 requests per minute") == name_of("each user: requests per minute")
    assert limits[0].id == limits[1].id != parse_limit(limits[0].rule, by_operator=True).id


def test_a_bucket_holds_the_burst_and_at_least_a_quarter_of_a_second() -> None:
    texts = (
        "tenant: 60 requests per minute",
        "tenant: 60 requests per minute, burst 5",
        "tenant: 400 requests per second, burst 1",
    )

    assert [parse_limit(text).capacity for text in texts] == [60, 5, 100]
