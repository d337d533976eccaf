"""The rules: for each caller and each object the outcome, written down by hand.

Callers
    ann       a user of the tenant `default`, with read and write
    bob       another user of it
    reader    ann's key that may only read
    admin     a key with read, write and admin
    agent     ann's key that speaks for the agent `support`
    backend   a key with act-as, which names ann in `Holdfast-User`
    operator  a key of a third tenant with every scope, which names `default` in `Holdfast-Tenant`
    stranger  a user of the tenant `acme`, called ann, too
    nobody    without a key

Objects: ann's, bob's, one of acme (the stranger's), a missing one; `ours` is one that the tenant `default` has as a
whole; `once` stands for an operation that names no object.

Outcomes
    ok      2xx; where the row says that the answer shows the object, it is in it
    absent  2xx, and the answer does not show the object: a list without it, or something new
    404     refused with this status; nothing has changed, and every object is refused in the same words
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

Caller = Literal["ann", "bob", "reader", "admin", "agent", "backend", "operator", "stranger", "nobody"]
Target = Literal["ann's", "bob's", "ours", "acme's", "missing", "once"]
Outcome = int | Literal["ok", "absent"]

CALLERS: tuple[Caller, ...] = ("ann", "bob", "reader", "admin", "agent", "backend", "operator", "stranger", "nobody")


@dataclass(frozen=True, slots=True)
class Rule:
    """A table of outcomes."""

    name: str
    targets: tuple[Target, ...]
    lines: Mapping[Caller, tuple[Outcome, ...]]

    def outcome(self, caller: Caller, target: Target) -> Outcome:
        """What comes of a call."""
        return self.lines[caller][self.targets.index(target)]

    def but(self, name: str, **lines: str) -> "Rule":
        """The same rule with other lines for some callers; a single outcome is that of every column."""
        width = len(self.targets)
        changed = {cast(Caller, caller): _line(line, width) for caller, line in lines.items()}
        assert changed.keys() <= self.lines.keys(), f"{name}: there is no caller {changed.keys() - self.lines.keys()}"
        return replace(self, name=name, lines={**self.lines, **changed})

    def as_list(self, name: str) -> "Rule":
        """The rule of a list: it shows what can be read one by one."""
        kept = [place for place, target in enumerate(self.targets) if target != "missing"]
        lines: dict[Caller, tuple[Outcome, ...]] = {
            caller: tuple("absent" if line[place] == 404 else line[place] for place in kept)
            for caller, line in self.lines.items()
        }
        return Rule(name, tuple(self.targets[place] for place in kept), lines)


def rule(name: str, table: str) -> Rule:
    """A rule as it is written: a line of targets, and a line for each caller."""
    head, *rest = [line.split() for line in table.strip().splitlines()]
    lines: dict[Caller, tuple[Outcome, ...]] = {
        cast(Caller, line[0]): _line(" ".join(line[1:]), len(head)) for line in rest
    }
    assert tuple(lines) == CALLERS, f"{name}: a rule has a line for each caller, in their order"
    return Rule(name, cast(tuple[Target, ...], tuple(head)), lines)


def _line(text: str, width: int) -> tuple[Outcome, ...]:
    outcomes: list[Outcome] = [_outcome(word) for word in text.split()]
    assert len(outcomes) in (1, width), f"{text!r} has {len(outcomes)} outcomes, and there are {width} columns"
    return tuple(outcomes * width if len(outcomes) == 1 else outcomes)


def _outcome(word: str) -> Outcome:
    assert word.isdigit() or word in ("ok", "absent"), f"there is no outcome {word!r}"
    return int(word) if word.isdigit() else cast(Literal["ok", "absent"], word)


# Objects of users

OWN = rule(
    "own: a user's own, and for an admin every one of the tenant",
    """
              ann's   bob's   acme's  missing
    ann       ok      404     404     404
    bob       404     ok      404     404
    reader    ok      404     404     404
    admin     ok      ok      404     404
    agent     ok      404     404     404
    backend   ok      404     404     404
    operator  ok      ok      404     404
    stranger  404     404     ok      404
    nobody    401     401     401     401
    """,
)
OWN_WRITE = OWN.but("own, to change", reader="403")
OWN_DECISION = OWN_WRITE.but("own, to decide: not for an agent", agent="403")
OWN_PRIVILEGE = OWN_WRITE.but(
    "own, what only an admin may do with it",
    ann="403 404 404 404", bob="404 403 404 404", agent="403 404 404 404", backend="403 404 404 404",
    stranger="404 404 403 404",
)  # fmt: skip
# Where two objects have to belong together, the first one is the caller's own; an admin takes ann's.
SAME_TREE = OWN.but("own, of one tree", admin="ok 404 404 404", operator="ok 404 404 404")
SAME_TREE_WRITE = SAME_TREE.but("own, of one tree, to change", reader="403")
SAME_TREE_MOVE = rule(
    "own, of one tree, to move",
    """
              ann's   bob's   acme's  missing
    ann       ok      400     400     400
    bob       400     ok      400     400
    reader    403     403     403     403
    admin     ok      400     400     400
    agent     ok      400     400     400
    backend   ok      400     400     400
    operator  ok      400     400     400
    stranger  400     400     ok      400
    nobody    401     401     401     401
    """,
)
OWN_LIST = OWN.as_list("own, as a list")

MINE = OWN.but("mine: a user's own, for an admin too", admin="404", operator="404")
MINE_LIST = MINE.as_list("mine, as a list")
MINE_PERSON = MINE.but("mine, to change: not for an agent", reader="403", agent="403")

USER_NAME = rule(
    "user name: to name another user is for admins, whether there is one or not",
    """
              ann's   bob's   acme's  missing
    ann       ok      403     403     403
    bob       403     ok      403     403
    reader    ok      403     403     403
    admin     ok      ok      absent  absent
    agent     ok      403     403     403
    backend   ok      403     403     403
    operator  ok      ok      absent  absent
    stranger  absent  403     403     403
    nobody    401     401     401     401
    """,
)
USER_NAME_WRITE = USER_NAME.but("user name, to change", reader="403")
USER_NAME_PUT = USER_NAME_WRITE.but("user name, to store", admin="ok", operator="ok", stranger="ok 403 403 403")

SESSION = rule(
    "session: of one that is not the caller's a new one of their own begins",
    """
              ann's   bob's   acme's  missing
    ann       ok      absent  absent  absent
    bob       absent  ok      absent  absent
    reader    403     403     403     403
    admin     absent  absent  absent  absent
    agent     ok      absent  absent  absent
    backend   ok      absent  absent  absent
    operator  absent  absent  absent  absent
    stranger  absent  absent  ok      absent
    nobody    401     401     401     401
    """,
)

SESSION_NAME = SESSION.but(
    "session: to make one of a name that is taken by the same user",
    ann="409 absent absent absent", bob="absent 409 absent absent", agent="409 absent absent absent",
    backend="409 absent absent absent", stranger="absent absent 409 absent",
)  # fmt: skip
# For an admin a session begins with what they have it remember.
ANY_SESSION = OWN.but("own, and for an admin any session", admin="ok ok absent absent", operator="ok ok absent absent")
ANY_SESSION_WRITE = ANY_SESSION.but(
    "own, and for an admin any session, to change", reader="403", admin="ok", operator="ok"
)

# Objects of a tenant

SHARED = rule(
    "shared: every caller of the tenant",
    """
              ours    acme's  missing
    ann       ok      404     404
    bob       ok      404     404
    reader    ok      404     404
    admin     ok      404     404
    agent     ok      404     404
    backend   ok      404     404
    operator  ok      404     404
    stranger  404     ok      404
    nobody    401     401     401
    """,
)
SHARED_PRIVILEGE = SHARED.but(
    "shared, what only an admin may do with it",
    ann="403 404 404", bob="403 404 404", reader="403", agent="403 404 404", backend="403 404 404",
    stranger="404 403 404",
)  # fmt: skip
SHARED_PERSON = SHARED.but("shared, to use in one's own name: not for an agent", reader="403", agent="403")
SHARED_LIST = SHARED.as_list("shared, as a list")

ADMIN = rule(
    "admin: who administers the tenant",
    """
              ours    acme's  missing
    ann       403     403     403
    bob       403     403     403
    reader    403     403     403
    admin     ok      404     404
    agent     403     403     403
    backend   403     403     403
    operator  ok      404     404
    stranger  403     403     403
    nobody    401     401     401
    """,
)
ADMIN_LIST = ADMIN.as_list("admin, as a list")
ADMIN_PUT = ADMIN.but("admin, to store under any name", admin="ok", operator="ok")

HIDDEN = ADMIN.but(
    "hidden: for admins, and not there for others",
    ann="404", bob="404", reader="404", agent="404", backend="404", stranger="404",
)  # fmt: skip
HIDDEN_LIST = HIDDEN.as_list("hidden, as a list")
# A key with act-as vouches for its user: what is nobody's is theirs to go on with, as it is an admin's.
ADOPTION = HIDDEN.but("adopted: what is nobody's, by who may go on with it", backend="ok 404 404")
SESSION_ADOPTION = rule(
    "adopted: what is nobody's is gone on with by who may, for others a new session begins",
    """
              ours    acme's  missing
    ann       absent  absent  absent
    bob       absent  absent  absent
    reader    403     403     403
    admin     ok      absent  absent
    agent     absent  absent  absent
    backend   ok      absent  absent
    operator  ok      absent  absent
    stranger  absent  absent  absent
    nobody    401     401     401
    """,
)

# Skills are read by agents that have them and by who administers the tenant; to others there is no such thing.
SKILL = HIDDEN.but("skill: the agent's, and an admin's", agent="ok 404 404")
SKILL_LIST = SKILL.as_list("skill, as a list")

LINK = rule(
    "link: whoever has it",
    """
              ours    acme's  missing
    ann       ok      ok      401
    bob       ok      ok      401
    reader    ok      ok      401
    admin     ok      ok      401
    agent     ok      ok      401
    backend   ok      ok      401
    operator  ok      ok      401
    stranger  ok      ok      401
    nobody    ok      ok      401
    """,
)

STATE = rule(
    "state: whoever has it sees for whom it is",
    "ann's bob's acme's missing\n" + "\n".join(f"{caller} ok ok ok 404" for caller in CALLERS),
)
STATE_ANSWER = rule(
    "state: who began it, or a browser in which nobody is signed in",
    """
              ann's   bob's   acme's  missing
    ann       ok      403     404     404
    bob       403     ok      404     404
    reader    ok      403     404     404
    admin     403     403     404     404
    agent     403     403     403     403
    backend   ok      403     404     404
    operator  403     403     404     404
    stranger  404     404     ok      404
    nobody    ok      ok      ok      404
    """,
)

# Operations without an object

READ = rule(
    "read: who may read",
    """
              once
    ann       ok
    bob       ok
    reader    ok
    admin     ok
    agent     ok
    backend   ok
    operator  ok
    stranger  ok
    nobody    401
    """,
)
WRITE = READ.but("write: who may write", reader="403")
ADMIN_ONCE = rule(
    "admin: who administers the tenant",
    """
              once
    ann       403
    bob       403
    reader    403
    admin     ok
    agent     403
    backend   403
    operator  ok
    stranger  403
    nobody    401
    """,
)
OPERATOR = ADMIN_ONCE.but("operator: who runs the server", admin="403")
PUBLIC = READ.but("public: everybody", nobody="ok")
NOWHERE = rule("nowhere: not offered here", "once\n" + "\n".join(f"{caller} 404" for caller in CALLERS))
