import pytest

from holdfast.conversations.resolution import Resolution, resolve

pytestmark = pytest.mark.req("STM-04")

# stored, active: the session, and whether to forget what is stored, store it, make it the active one
TABLE = {
    (None, None): Resolution("new", forget_stored=False, store_locally=True, activate=True),
    (None, "a"): Resolution("a", forget_stored=False, store_locally=True, activate=False),
    ("a", "a"): Resolution("a", forget_stored=False, store_locally=False, activate=False),
    ("a", "b"): Resolution("b", forget_stored=True, store_locally=True, activate=False),
    ("a", None): Resolution("new", forget_stored=True, store_locally=True, activate=True),
    ("", None): Resolution("new", forget_stored=True, store_locally=True, activate=True),
    ("", "a"): Resolution("a", forget_stored=True, store_locally=True, activate=False),
    ("A", "a"): Resolution("a", forget_stored=True, store_locally=True, activate=False),
}


@pytest.mark.parametrize(("known", "wanted"), TABLE.items(), ids=[f"{stored}-{active}" for stored, active in TABLE])
def test_the_stored_session_goes_first_if_it_is_active_then_the_active_one_then_a_new_one(
    known: tuple[str | None, str | None], wanted: Resolution
) -> None:
    stored, active = known

    assert resolve(stored, active, lambda: "new") == wanted


def test_no_session_is_made_up_where_one_is_active() -> None:
    made: list[str] = []

    resolve("old", "a", lambda: made.append("new") or "new")

    assert made == []
