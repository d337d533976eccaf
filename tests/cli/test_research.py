"""`holdfast research`, without calls of a model."""

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.req("KNOW-04", "UI-02")


def test_a_question_is_answered_from_documents_and_the_research_is_listed(desk: Program) -> None:
    desk("knowledge", "add", "-", "--name", "harbour.md", typed="Mooring costs 12 euros for a night. Dogs are welcome.")

    answer = desk("research", "What does mooring cost?", "--document", "harbour.md", "--calls", "0")
    as_json = desk("research", "What does mooring cost?", "--calls", "0", "--json").json
    rows = desk("research", "ls", "--json").json

    assert "- Mooring costs 12 euros for a night. [1]" in answer.stdout
    assert "1. harbour.md, characters 0-35: “Mooring costs 12 euros for a night.”" in answer.stdout
    assert "0 calls, 0 tokens" in answer.stderr
    assert as_json["research"]["state"] == "done"
    assert [row["question"] for row in rows] == ["What does mooring cost?"] * 2
    shown = desk("research", "show", rows[0]["id"])
    assert "Mooring costs 12 euros" in shown.stdout
    desk("research", "rm", rows[0]["id"])
    assert len(desk("research", "ls", "--json").json) == 1


def test_an_unknown_document_is_not_found(desk: Program) -> None:
    failed = desk("research", "Why?", "--document", "nothing.pdf")

    assert failed.code == 3
    assert "there is no document 'nothing.pdf'" in failed.stderr
