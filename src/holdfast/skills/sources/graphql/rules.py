"""Rules for selections: how much of a result a tool asks for."""

import msgspec

from holdfast.core.errors import InvalidInput

DEEPEST = 20
MOST_FIELDS = 1000
MOST_CHARACTERS = 50_000
MOST_ITEMS = 1000
MOST_OVERRIDES = 500


class SelectionRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the tools of a GraphQL source ask for.

    By default, a tool asks for the scalars and enums of a result down to `depth`, in at most `fields` fields and
    `characters`. `items` is the size of a page of a connection, unless the caller says it. `operations` has selections
    for single operations instead, such as `{"query repository": "{ id name }"}`. `deepest` limits the selections of
    callers.
    """

    depth: int = 2
    fields: int = 100
    characters: int = 4000
    items: int = 20
    deepest: int = 8
    operations: dict[str, str] = {}


def check_rules(rules: SelectionRules) -> None:
    """Refuse rules that are out of range."""
    for name, most in (
        ("depth", DEEPEST), ("fields", MOST_FIELDS), ("characters", MOST_CHARACTERS), ("items", MOST_ITEMS),
        ("deepest", DEEPEST),
    ):  # fmt: skip
        value: int = getattr(rules, name)
        if not 0 < value <= most:
            raise _rules_error(f"`{name}` of its selection is {value}", f"Use 1 to {most}.")
    if len(rules.operations) > MOST_OVERRIDES:
        raise _rules_error(f"it has {len(rules.operations)} selections", f"Use at most {MOST_OVERRIDES}.")
    for operation, text in rules.operations.items():
        if not operation.strip() or not text.strip() or len(operation) > 300 or len(text) > MOST_CHARACTERS:
            next = f"Write an operation and its fields in {MOST_CHARACTERS} characters: 'repository={{ id name }}'."
            raise _rules_error(f"the selection of {operation!r:.100} is empty or too long", next)


def _rules_error(why: str, next: str) -> InvalidInput:
    return InvalidInput("the source cannot be stored", why=why, next=next)
