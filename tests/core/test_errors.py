import inspect
from collections.abc import Iterator, Mapping

import pytest

from holdfast.core import errors, wires
from holdfast.core.errors import BadSetting, Conflict, HoldfastError, NotFound, Overloaded

WIRES: dict[str, Mapping[str, int]] = {
    "HTTP_STATUS": wires.HTTP_STATUS,
    "JSONRPC_CODE": wires.JSONRPC_CODE,
    "MCP_CODE": wires.MCP_CODE,
    "EXIT_CODE": wires.EXIT_CODE,
}


def tree(root: type[HoldfastError] = HoldfastError) -> Iterator[type[HoldfastError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def offences(classes: list[type[HoldfastError]]) -> list[str]:
    """What is wrong with the codes of these classes."""
    codes = [cls.code for cls in classes]
    shared = [f"{cls.__name__} shares the code {cls.code}" for cls in classes if codes.count(cls.code) > 1]
    missing = [f"{name} has no {cls.code}" for cls in classes for name, table in WIRES.items() if cls.code not in table]
    stale = [f"{name} has {code}, no error" for name, table in WIRES.items() for code in table if code not in codes]
    return shared + missing + stale


def public_errors() -> list[type[HoldfastError]]:
    return [cls for cls in tree() if cls.__module__ == errors.__name__]


@pytest.mark.req("ENG-07")
def test_every_error_has_a_code_of_its_own_in_every_wire_table() -> None:
    classes = public_errors()

    found = offences(classes)

    assert len(classes) == 18
    assert found == []


@pytest.mark.req("ENG-07")
def test_an_error_with_a_new_code_or_a_borrowed_one_is_noticed() -> None:
    new: type[HoldfastError] = type("Melted", (HoldfastError,), {"code": "melted"})
    borrowed: type[HoldfastError] = type("Gone", (HoldfastError,), {"code": "not_found"})

    found = offences([*public_errors(), new, borrowed])

    assert "HTTP_STATUS has no melted" in found
    assert "EXIT_CODE has no melted" in found
    assert "Gone shares the code not_found" in found
    assert "NotFound shares the code not_found" in found


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
