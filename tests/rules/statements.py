"""Rules for the `.sql` files of the package.

Most of them keep the schema distributable by tenant: what they forbid is refused, or slow, or silently different on a
distributed database. What only the catalogue knows is tested on a migrated database, not here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.rules.tree import line_of, source


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A form that no statement of ours has, and what to write instead."""

    name: str
    form: re.Pattern[str]
    instead: str


def _forbidden(name: str, form: str, instead: str) -> Forbidden:
    return Forbidden(name, re.compile(form, re.IGNORECASE | re.DOTALL), instead)


FORBIDDEN = (
    _forbidden(
        "trigger on a table",
        r"\bcreate\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\s+\S+\s+(?!instead\b)\w+",
        "write the step in the function that writes the row; only INSTEAD OF triggers on views are allowed",
    ),
    _forbidden("merge", r"\bmerge\s+into\b", "use insert … on conflict"),
    _forbidden(
        "copy",
        r"(?:\A|;|\bbegin\b|\bthen\b|\belse\b|\bloop\b)\s*copy\s",
        "use insert … select … from unnest(…) returning …: copy is refused under row-level security",
    ),
    _forbidden(
        "on delete set null",
        r"\bon\s+delete\s+set\s+null\b",
        "cascade, or clear the column in the statement: the key holds the tenant",
    ),
    _forbidden(
        "function in the language sql",
        r"\blanguage\s+'?sql\b(?!'?\s+immutable\b)",  # an immutable one reads no table, so there is nothing to route
        "write it in plpgsql: what is inlined is not routed to one tenant",
    ),
    _forbidden("serial column", r"\b(?:small|big)?serial[248]?\b", "use a uuid, a counter row, or a bigint identity"),
    _forbidden(
        "identity of 32 bits or less",
        r"\b(?:int|integer|int4|smallint|int2)\s[^,;]*?\bgenerated\s+(?:always|by\s+default)\s+as\s+identity\b",
        "make it bigint",
    ),
    _forbidden("branch on a constraint's name", r"\bconstraint_name\b", "branch on the SQLSTATE: names are lost there"),
    _forbidden("version by xmin", r"\bxmin\b", "keep an integer version"),
    _forbidden("vector cast through text", r"::\s*text\s*::\s*(?:half)?vec", "give the parameter its own type"),
    _forbidden(
        "session-level advisory lock",
        r"\bpg_(?:try_)?advisory_lock(?:_shared)?\b",
        "use the _xact_ form: poolers share sessions between clients",
    ),
    _forbidden("policy with a subquery", r"\bcreate\s+policy\b[^;]*\(\s*select\b", "compare columns and settings only"),
    _forbidden(
        "policy that forgives a missing tenant",
        r"\bcreate\s+policy\b[^;]*\bcurrent_setting\s*\([^)]*,",
        "drop the second argument of current_setting: a forgotten tenant must be an error",
    ),
)

# What may ask the server's own clock, by file and what stands in the line, and why.
_PROGRAM = "is about the program, not about the data"
OWN_CLOCK = {
    (
        "src/holdfast/postgres/migrations/0001_foundation.sql",
        "current_setting('holdfast.now', true)",
    ): "is holdfast.now",
    ("src/holdfast/postgres/migrations/0001_foundation.sql", "bits bytea :="): "keeps identifiers apart, dates nothing",
    ("src/holdfast/postgres/ledger.sql", "applied_at"): _PROGRAM,
    ("src/holdfast/postgres/sql/record_function.sql", "applied_at"): _PROGRAM,
    (
        "src/holdfast/postgres/sql/end_overdue_logins.sql",
        "clock_timestamp() - ",
    ): "sessions of the server go by the server's clock",
    ("src/holdfast/cli/sql/server.sql", "clock_timestamp() as now"): "compares the server's clock with the machine's",
}
_CLOCK = re.compile(
    r"(?<![\w.])(?:pg_catalog\.)?(?:now|(?:clock|statement|transaction)_timestamp|timeofday)\s*\("
    r"|\b(?:current_timestamp|current_date|current_time|localtimestamp|localtime)\b|'now'",
    re.IGNORECASE,
)

# A comment may stand in a string and a quote in a comment: the alternatives are tried in the order of the text.
_COMMENT_OR_STRING = re.compile(r"(?P<comment>--[^\n]*|/\*.*?\*/)|'(?:[^']|'')*'", re.DOTALL)
_REASON = re.compile(r"-- \S+ \S+")


def forbidden_forms(root: Path) -> list[str]:
    """No statement has a form that would keep the schema from being distributed."""
    return [
        f"{name}:{line_of(text, match.start())}: {rule.name}; {rule.instead}"
        for name, text in source(root, ".sql")
        for rule in FORBIDDEN
        for match in rule.form.finditer(_without_comments(text))
    ]


# Notifications that say something, by file, and what it is. Every login can send and hear them.
SAYING = {
    "src/holdfast/bus/sql/wake.sql": "numbers of partitions, and the random name of a process: bus/partition_hints.py"
}
_NOTIFIES = re.compile(r"\bpg_notify\s*\(", re.IGNORECASE)
_NOTIFIES_NOTHING = re.compile(r"\bpg_notify\s*\(\s*('[a-z_]+'|channel)\s*,\s*''\s*\)")


def telling_notifications(root: Path) -> list[str]:
    """No notification says anything but that rows may have changed."""
    return [
        f"{name}:{line_of(text, match.start())}: a notification that says something; put it into a row"
        for ending in (".sql", ".py")
        for name, text in source(root, ending)
        if name not in SAYING
        for shown in [_without_comments(text)]
        for match in _NOTIFIES.finditer(shown)
        if not _NOTIFIES_NOTHING.match(shown, match.start())
    ]


def other_clocks(root: Path) -> list[str]:
    """No statement asks a clock that a test cannot move."""
    return [
        f"{name}:{line_of(text, match.start())}: `{match[0]}` is a clock that no test can move; ask holdfast.now()"
        for name, text in source(root, ".sql")
        for match in _CLOCK.finditer(_without_comments(text))
        if not any(name == file and part in _line(text, match.start()) for file, part in OWN_CLOCK)
    ]


def unexplained(root: Path) -> list[str]:
    """Every `.sql` file starts with a comment that gives its reason."""
    return [
        f"{name}:1: no reason on top; start the file with a comment: what it does, and why so"
        for name, text in source(root, ".sql")
        if not _REASON.match(text)
    ]


def _line(text: str, position: int) -> str:
    return text.splitlines()[line_of(text, position) - 1]


def _without_comments(text: str) -> str:
    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match["comment"] else match[0]

    return _COMMENT_OR_STRING.sub(blank, text)
