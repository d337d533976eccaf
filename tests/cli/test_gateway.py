"""Access rules and explanations on the command line."""

from pathlib import Path

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("MCP-07", "UI-02")

LARGE = 'large: deny tool "refund" when amount > 100 because "A person pays more than 100."'


def test_rules_are_set_from_a_file_tested_listed_and_removed(desk: Program, tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(f"# Money.\n{LARGE}\n", "utf-8")

    tested = desk("gateway", "rules", "test", str(file))
    stored = desk("gateway", "rules", "set", str(file))
    added = desk("gateway", "rules", "add", 'later: dry-run deny user "bob" on sat-sun')
    listed = desk("gateway", "rules", "ls")
    shown = desk("gateway", "rules", "show", "later")
    text = desk("gateway", "rules", "text")
    removed = desk("gateway", "rules", "rm", "later")
    wrong = desk("gateway", "rules", "add", "x: forbid", "--json")
    desk("gateway", "rules", "set", "-", typed=b"")

    assert (tested.code, stored.code) == (0, 0)
    assert "1 rules are valid" in tested.stderr
    assert "There is 1 rule now (version 1)." in stored.stderr
    assert "There are 2 rules now" in added.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["NAME", "large", "later"]
    assert "deny, on trial" in listed.stdout
    assert "would have decided no call otherwise" in shown.stdout
    assert text.stdout == f'# Money.\n{LARGE}\nlater: dry-run deny user "bob" on sat-sun\n'
    assert removed.code == 0
    assert (wrong.code, wrong.error["code"]) == (2, "invalid_input")
    assert "line 1, column 4" in wrong.error["why"]


def test_a_call_is_explained_with_its_arguments(desk: Program) -> None:
    desk("gateway", "rules", "set", "-", typed=b'no: deny user "bob" tool "search_tools" when limit > 3')

    refused = desk("gateway", "explain", "--as", "bob", "search_tools", "query=x", "limit=4")
    allowed = desk("gateway", "explain", "--as", "ann", "search_tools", "query=x", "limit=4", "--json")
    depends = desk("gateway", "explain", "--as", "bob", "search_tools")
    missing = desk("gateway", "explain", "nothing")
    desk("gateway", "rules", "set", "-", typed=b"")

    assert refused.stdout.splitlines()[:2] == ["search_tools: refused", "  the access rule no denies it"]
    assert "no (deny): matches (this one decides)" in refused.stdout
    assert allowed.json["verdict"] == "allowed"
    assert depends.stdout.startswith("search_tools: it depends on the arguments")
    assert "there is no tool 'nothing'" in missing.stdout
