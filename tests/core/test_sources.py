from pathlib import Path

import pytest

from holdfast.core.config import load_config
from holdfast.core.errors import BadSetting

DEEP = 1000


@pytest.mark.req("ENG-06", "ENG-08")
@pytest.mark.parametrize(
    "text",
    [
        f"tenant = {'[' * DEEP}{']' * DEEP}",
        f"tenant = {'{a = ' * DEEP}1{'}' * DEEP}",
        f"[{'.'.join('a' * DEEP)}]\nb = 1",
        f"{'.'.join('a' * DEEP)} = 1",
        f"{'x' * 1_000_000} = 1",
        f"tenant = '{'x' * 900_000}'",
        f"tenant = '{'x' * 10_000_000}'",
    ],
    ids=["lists", "inline tables", "a table", "a dotted key", "a long key", "a long value", "a large file"],
)
def test_a_file_beyond_all_measure_is_refused_in_few_words(text: str, tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text(text)

    with pytest.raises(BadSetting) as refused:
        load_config(environ={}, cwd=tmp_path)

    assert len(str(refused.value)) < 2000
    assert refused.value.next
