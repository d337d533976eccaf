"""Which trouble passes, and what users are told of the rest."""

import pytest

from holdfast.agents.runs import error_data, is_passing
from holdfast.core.errors import (
    AlreadyExists,
    Broken,
    Busy,
    DatabaseAway,
    HoldfastError,
    InvalidInput,
    LimitReached,
    ModelFailed,
    Overloaded,
    SchemaMismatch,
    TimedOut,
    TooLarge,
    Unavailable,
)
from holdfast.core.ids import uuid7

RUN = uuid7()


@pytest.mark.req("AGENT-01", "ENG-02")
@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Busy("held"), True),
        (DatabaseAway("away"), True),
        (Overloaded("full", retry_after=1), True),
        (TimedOut("slow"), True),
        (Unavailable("read-only", sqlstate="25006"), True),
        (Broken("odd", sqlstate="XX000"), True),
        (InvalidInput("no text", sqlstate="22021"), False),
        (TooLarge("too much", sqlstate="54000"), False),
        (AlreadyExists("there", sqlstate="23505"), False),
        (ModelFailed("away", model="m", retryable=True), False),
        (LimitReached("enough"), False),
        (Broken("a defect"), False),
    ],
)
def test_trouble_of_the_database_passes_and_what_it_refuses_does_not(error: HoldfastError, passes: bool) -> None:
    assert is_passing(error) is passes


@pytest.mark.req("SAFE-02")
def test_users_are_told_what_they_can_do_something_about() -> None:
    limit = error_data(LimitReached("too many steps", why="there were 3", next="Ask for less."), RUN)
    defect = error_data(SchemaMismatch("a column is missing", why='relation "salaries"', next="See salaries."), RUN)

    assert limit["message"] == "too many steps: there were 3. Ask for less."
    assert "salaries" not in str(defect)
    assert (defect["what"], defect["code"]) == ("a column is missing", "broken")
    assert str(RUN) in defect["next"]
