from typing import Any

from holdfast.cli.graph import entity_lines, path_lines

ANN: dict[str, Any] = {
    "id": "1",
    "name": "Ann",
    "type": "Person",
    "description": None,
    "aliases": ["Annie"],
    "mentions": 3,
}
ACME: dict[str, Any] = {
    "id": "2",
    "name": "Acme",
    "type": "Organization",
    "description": None,
    "aliases": [],
    "mentions": 1,
}
SUPPORT = {"text": "Ann works\nat Acme.", "citation": "Staff, page 2"}


def test_an_entity_is_shown_with_its_links_and_what_names_it() -> None:
    view: dict[str, Any] = {
        "entity": ANN,
        "merges": [{"id": "9", "other_name": "Annie", "keep_name": "Ann", "memory": None}],
        "neighbours": [
            {"entity": ACME, "relation": "WORKS_AT", "outgoing": True, "count": 1},
            {"entity": ACME, "relation": None, "outgoing": True, "count": 2},
        ],
        "mentions": [SUPPORT],
    }

    assert list(entity_lines(view)) == [
        "Ann (Person), in 3 texts  1",
        "Also: Annie",
        "  Annie = Ann (merged by hand, undo: unmerge 9)",
        "  -> WORKS_AT Acme (1)",
        "  -- with Acme (2)",
        "Named by:",
        "  Ann works at Acme. [Staff, page 2]",
    ]


def test_a_path_is_shown_hop_by_hop_with_what_supports_it() -> None:
    path: dict[str, Any] = {"hops": [{"source": ANN, "target": ACME, "label": "WORKS_AT", "supports": [SUPPORT]}]}

    assert list(path_lines([path], cut=True)) == [
        "1. Ann -[WORKS_AT]- Acme",
        "     Ann works at Acme. [Staff, page 2]",
        "The search met a limit: there may be more paths.",
    ]
    assert list(path_lines([], cut=False)) == ["No path was found."]
