"""The text of access rules: what it says, and what is wrong with it."""

import re
import string
from datetime import date, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidInput
from holdfast.skills.rules.grammar import MAX_RULES, MAX_TEXT_BYTES, DefaultEffect, parse_rules
from tests.rules.tree import ROOT

pytestmark = pytest.mark.req("MCP-07")

TEXT = """# Who may pay.
default deny

large-refunds: deny agent "support", "clerk-*" except "clerk-ann" tool "refund"
  # why: see the handbook
  when amount > 100 and customer.country not in "DE", "FR"
  because "A person pays back more than 100."

nights: dry-run deny source "shop" on fri-sun between 22:00 and 06:00
\ttimezone "Europe/Berlin" from 2026-01-01 until 2026-07-01
# The end.
"""


def test_a_rule_says_who_what_when_and_why() -> None:
    found = parse_rules(TEXT)

    large, nights = found.rules
    assert found.default == DefaultEffect("deny")
    assert (large.name, large.effect, large.on_trial, large.line) == ("large-refunds", "deny", False, 4)
    assert [(clause.part, [each.text for each in clause.names]) for clause in (*large.who, *large.what)] == [
        ("agent", ["support", "clerk-*"]),
        ("tool", ["refund"]),
    ]
    assert [each.text for each in large.conditions] == ["amount > 100", 'customer.country not in "DE", "FR"']
    assert large.because == "A person pays back more than 100."
    assert nights.on_trial
    assert nights.times is not None
    assert (nights.times.days, nights.times.hours) == (frozenset({4, 5, 6}), (time(22), time(6)))
    assert (nights.times.begin, nights.times.end) == (date(2026, 1, 1), date(2026, 7, 1))


def test_the_rules_of_the_documentation_are_valid() -> None:
    page = (ROOT / "docs" / "policies.md").read_text("utf-8")
    blocks = re.findall(r"^```rules\n(.*?)^```", page, re.DOTALL | re.MULTILINE)

    found = [rule.name for block in blocks for rule in parse_rules(block).rules]

    assert {"large-refunds", "our-hosts"} <= {*found}
    assert parse_rules(blocks[-1]).rules[-1].is_met({"url": "https://evil.example.org/"}, 0)
    assert not parse_rules(blocks[-1]).rules[-1].is_met({"url": "https://www.example.com/a"}, 0)


def test_sentences_that_did_not_change_are_not_read_again() -> None:
    before = parse_rules(TEXT)
    changed = f'first: deny user "bob"\n{TEXT.replace("nights: ", "evenings: ")}'

    found = parse_rules(changed, before.rules)

    assert found == parse_rules(changed)
    assert [each.place for each in found.rules] == [0, 1, 2]
    assert found.rules[1].conditions is before.rules[0].conditions
    with pytest.raises(InvalidInput, match="exists already, in line"):
        parse_rules(TEXT + TEXT.replace("default deny", ""), before.rules)


def test_the_text_stays_as_it_was_written_and_a_removed_rule_leaves_the_rest() -> None:
    found = parse_rules(TEXT)

    assert found.text == TEXT
    left = parse_rules(found.without("large-refunds"))
    assert [each.name for each in left.rules] == ["nights"]
    assert left.text.startswith("# Who may pay.\ndefault deny\n\n\nnights:")
    assert left.text.endswith("# The end.\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deny tool", "line 1, column 1: a rule begins with its name and a colon"),
        ("a: forbid", "line 1, column 4: expected `allow` or `deny`, not `forbid`"),
        ("a: deny tool refund", "line 1, column 14: expected a name of the tool in double quotes, not `refund`"),
        ("a: deny tool", "expected a name of the tool in double quotes, not the end of the rule"),
        ('a: deny team "x"', "line 1, column 9: `team` is not known here"),
        ('a: deny tool "x" tool "y"', "line 1, column 18: `tool` is given twice"),
        ('\n\na: deny\n  kind "resst"', "line 4, column 8: there is no kind 'resst'"),
        ('a: deny scope "owner"', "there is no scope 'owner'"),
        ('a: deny tool "a\\d"', "is not a text as in JSON"),
        ('a: deny tool "a\\\\d"', "`\\d` has no meaning in a pattern"),
        ('a: deny tool "a\\\\"', "cannot end in a single backslash"),
        ('a: deny tool "a', "a text without its closing quote"),
        ("a: deny tool ;", "not `;`"),
        ('a: deny when a > "b"', '`>` compares numbers, and `"b"` is none'),
        ("a: deny when a > true", "`>` compares numbers"),
        ("a: deny when a ~ 1", "expected one of =, !=, <"),
        ("a: deny when a not = 1", "expected `in`, `like` or `matches`"),
        ("a: deny when a = b", "expected a value"),
        ("a: deny when a = 01", "expected a value"),
        ("a: deny when a = \u0663", "expected a value"),
        ("a: deny when a > 1e400", "expected a value"),
        ("a: deny when a > 1e999", "expected a value"),
        ("a: deny when a..b = 1", "is not an argument"),
        ("a: deny when a is empty", "expected `missing` or `given`"),
        ('a: deny when a matches "("', "the regular expression is invalid or too large"),
        ('a: deny when a matches "(?=b)"', "without look-ahead and back references"),
        ('a: deny when a matches "(a)\\\\1"', "without look-ahead and back references"),
        ('a: deny when a matches "((a{1,500}){1,500}){1,500}"', "invalid or too large"),
        (f'a: deny when a matches "{"a" * 501}"', "at most 500 characters"),
        ("a: deny on monday", "`monday` is not a day"),
        ("a: deny between 9:00 and 17:00", "`9:00` is not an hour"),
        ("a: deny between 24:00 and 06:00", "`24:00` is not an hour"),
        ("a: deny between 09:00 and 09:00", "these hours are empty"),
        ("a: deny from tomorrow", "`tomorrow` is not a time"),
        ("a: deny until 2026-02-30", "`2026-02-30` is not a time"),
        ('a: deny on mon timezone "Mars/Base"', "there is no time zone 'Mars/Base'"),
        ('a: deny on mon timezone "../../etc/passwd"', "there is no time zone"),
        ('a: deny from 0001-01-01 timezone "Asia/Tokyo"', "is too early or too late"),
        ("a: deny from 2026-07-02 until 2026-07-01", "`until` is not after `from`"),
        ('a: deny timezone "UTC"', "`timezone` is for"),
        ('a: deny because "x" tool "y"', "`tool` follows the end of the rule"),
        ("a: deny\na: allow", "line 2, column 1: the rule a exists already, in line 1"),
        ("default deny\ndefault allow", "line 2, column 1: `default` is given twice"),
        ("default: deny", "no rule can be called `default`"),
        ("default deny all", "`all` follows the end of the rule"),
        (f"{'a' * 65}: deny", "a rule begins with its name"),
        ("  a: deny\nb", "line 2, column 1"),
    ],
)
def test_an_error_names_its_place_and_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_rules(text)

    assert said in str(refused.value)


def test_all_errors_are_named_up_to_ten() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_rules("\n".join(f"rule-{n}: forbid" for n in range(12)))

    assert len(refused.value.details["errors"]) == 10  # type: ignore[arg-type]
    assert "line 10, column 9" in refused.value.why
    assert "and 2 more errors" in refused.value.why


def test_too_long_a_text_and_too_many_rules_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the access rules are too long"):
        parse_rules("#" * (MAX_TEXT_BYTES + 1))
    with pytest.raises(InvalidInput, match=f"the limit is {MAX_RULES:,}"):
        parse_rules("\n".join(f"r{n}: deny" for n in range(MAX_RULES + 1)))


@given(st.text(alphabet=string.printable + "ä\u2028\u200b\ud800", max_size=80))
def test_whatever_is_written_is_read_or_refused_with_a_reason(text: str) -> None:
    for each in (text, f"a: deny {text}", f"a: deny when {text}", f'a: deny tool "{text}"'):
        why, read = "", None
        try:
            read = parse_rules(each).text
        except InvalidInput as error:
            why = error.why
        assert read == each or why


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="*\\", exclude_categories=["Cs", "Cc"]), min_size=1),
        min_size=1,
    )
)
def test_a_name_in_quotes_is_that_name_whatever_its_characters_mean_elsewhere(names: list[str]) -> None:
    import json

    text = f"a: deny tool {', '.join(json.dumps(each) for each in names)}"

    clause = parse_rules(text).rules[0].what[0]

    assert clause.exact == tuple(names)
    assert all(clause.matches([each]) for each in names)
