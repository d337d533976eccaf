"""Which limits count for a call."""

import pytest

from holdfast.quotas.limit import describe_subject, parse_limit
from holdfast.quotas.limit_index import LimitIndex

pytestmark = pytest.mark.req("MCP-07")


def index(*texts: str, operator: tuple[str, ...] = (), defaults: tuple[str, ...] = ()) -> LimitIndex:
    """An index of limits of a tenant, of the operator for it, and of the settings."""
    made = LimitIndex([parse_limit(text, by_operator=True) for text in defaults])
    for text in operator:
        made.set(parse_limit(text, by_operator=True))
    for text in texts:
        made.set(parse_limit(text))
    return made


def found(limits: LimitIndex, **call: str) -> list[tuple[str, str]]:
    """The limits of a call, each with its subject."""
    return sorted((limit.rule, describe_subject(subject)) for limit, subject in limits.limits_of(**call))


def test_the_most_specific_limit_counts_in_place_of_the_others_of_its_kind() -> None:
    limits = index("each user: 60 requests per minute", "user ann: 600 requests per minute")

    assert found(limits, user="ann") == [("user ann: 600 requests per minute", "user ann")]
    assert found(limits, user="bob") == [("each user: 60 requests per minute", "user bob")]


def test_limits_of_different_scopes_measures_and_windows_all_count() -> None:
    limits = index(
        "each user: 60 requests per minute",
        "each user: 900 requests per day",
        "each user: 3 concurrent calls",
        "tool refund: 10 requests per hour",
        "each user of tool refund: 2 requests per hour",
        "tenant: 9000 requests per hour",
    )

    subjects = [subject for _, subject in found(limits, user="ann", tool="refund")]
    assert sorted(subjects) == ["tenant", "tool refund", "user ann", "user ann", "user ann", "user ann of tool refund"]
    assert len(found(limits, user="ann", tool="track")) == 4


def test_a_limit_counts_only_where_the_call_has_its_scopes() -> None:
    limits = index("each agent: 5 requests per minute", "each key: 5 requests per minute")

    assert found(limits, user="ann", tool="refund") == []
    assert [subject for _, subject in found(limits, user="ann", agent="support")] == ["agent support"]


def test_a_tenant_tightens_what_the_operator_allows_and_does_not_loosen_it() -> None:
    limits = index(
        "each user: 600 requests per minute",
        "user ann: 6000 requests per minute",
        operator=("each user: 60 requests per minute",),
    )

    assert [rule for rule, _ in found(limits, user="ann")] == [
        "each user: 60 requests per minute",
        "user ann: 6000 requests per minute",
    ]


def test_the_operator_replaces_a_limit_of_the_settings_for_a_tenant_until_it_is_removed() -> None:
    limits = index(operator=("each user: 500 requests per minute",), defaults=("each user: 60 requests per minute",))
    replaced = found(limits, user="ann")
    limits.remove(parse_limit("each user: 1 requests per minute", by_operator=True).id)

    assert replaced == [("each user: 500 requests per minute", "user ann")]
    assert found(limits, user="ann") == [("each user: 60 requests per minute", "user ann")]


def test_of_two_scopes_the_limit_that_names_both_counts_first() -> None:
    limits = index(
        "each user of each tool: 100 requests per hour",
        "each user of tool refund: 10 requests per hour",
        "user ann of tool refund: 50 requests per hour",
    )

    assert found(limits, user="ann", tool="refund")[0][0] == "user ann of tool refund: 50 requests per hour"
    assert found(limits, user="bob", tool="refund")[0][0] == "each user of tool refund: 10 requests per hour"
    assert found(limits, user="bob", tool="track") == [
        ("each user of each tool: 100 requests per hour", "user bob of tool track")
    ]
