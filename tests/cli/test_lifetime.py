from datetime import timedelta

import pytest

from holdfast.cli.durations import lifetime
from holdfast.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("45s", timedelta(seconds=45)),
        ("12h", timedelta(hours=12)),
        (" 30d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_lifetime_is_a_number_and_a_unit(text: str, length: timedelta) -> None:
    assert lifetime(text) == length


@pytest.mark.parametrize("text", ["", "0d", "-1d", "1.5h", "30", "d", "3y", "٣d", "999999999w", "1d1h"])
def test_what_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="30d or 12h"):
        lifetime(text)
