import pytest

from holdfast.core.errors import HoldfastError
from tests.rules.wires import miscoded, public_errors

pytestmark = pytest.mark.req("ENG-07")


def test_every_error_has_a_code_of_its_own_in_every_wire_table() -> None:
    classes = public_errors()

    found = miscoded(classes)

    assert len(classes) == 24
    assert found == []


def test_an_error_with_a_new_code_or_a_borrowed_one_is_noticed() -> None:
    new: type[HoldfastError] = type("Melted", (HoldfastError,), {"code": "melted"})
    borrowed: type[HoldfastError] = type("Gone", (HoldfastError,), {"code": "not_found"})

    found = miscoded([*public_errors(), new, borrowed])

    assert "HTTP_STATUS has no melted" in found
    assert "EXIT_CODE has no melted" in found
    assert "Gone shares the code not_found" in found
    assert "NotFound shares the code not_found" in found


def test_a_code_whose_error_is_gone_is_noticed() -> None:
    classes = [cls for cls in public_errors() if cls.code != "conflict"]

    found = miscoded(classes)

    assert "EXIT_CODE has conflict, no error" in found
