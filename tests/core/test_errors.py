import inspect
import pickle

import pytest

from holdfast.core import errors, wires
from holdfast.core.errors import BadSetting, Conflict, HoldfastError, NotFound, Overloaded
from tests.rules.wires import public_errors


def test_the_docstring_draws_the_whole_tree() -> None:
    drawn = {line.strip("│├└─ ") for line in (errors.__doc__ or "").splitlines() if "─" in line}

    names = {cls.__name__ for cls in public_errors()} - {"HoldfastError"}

    assert drawn == names


def test_every_error_says_what_it_means() -> None:
    silent = [cls.__name__ for cls in public_errors() if not inspect.getdoc(cls) or "__doc__" not in vars(cls)]

    assert silent == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NotFound("there is no tenant acme"), "there is no tenant acme"),
        (NotFound("no tenant acme", why="it was removed"), "no tenant acme: it was removed"),
        (NotFound("no tenant acme", next="Create it."), "no tenant acme. Create it."),
        (
            NotFound("no tenant acme", why="it was removed.", next="Create it."),
            "no tenant acme: it was removed. Create it.",
        ),
    ],
)
def test_an_error_reads_as_sentences(error: HoldfastError, text: str) -> None:
    assert str(error) == text


@pytest.mark.req("ENG-05")
def test_a_conflict_carries_the_expected_and_the_current_version() -> None:
    error = Conflict("the note was changed", expected=3, current=5, note="n1")

    assert error.details == {"expected": 3, "current": 5, "note": "n1"}
    assert str(error) == ("the note was changed: it is at version 5, not 3. Read the current version and try again.")


def test_an_overload_says_when_to_come_back() -> None:
    error = Overloaded("too many requests", retry_after=1.5)

    assert error.details == {"retry_after": 1.5}
    assert str(error) == "too many requests. Try again in 1.5 seconds."


def test_our_own_wire_codes_stay_out_of_the_range_of_the_protocols() -> None:
    taken = [
        code for table in (wires.JSONRPC_CODE, wires.MCP_CODE) for code in table.values() if -32099 <= code <= -32000
    ]

    assert taken == []


def test_a_bad_setting_is_invalid_input_and_wrong_usage() -> None:
    error = BadSetting("the setting server.port cannot be x")

    assert isinstance(error, errors.InvalidInput)
    assert wires.EXIT_CODE[error.code] == 2


@pytest.mark.parametrize(
    "error",
    [Conflict("the note", expected=1, current=2), NotFound("no note", why="it is gone", next="Write one.", id=7)],
)
def test_an_error_from_another_process_is_the_same(error: HoldfastError) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), copy.args, vars(copy)) == (type(error), str(error), error.args, vars(error))
