from pathlib import Path

import pytest

from tests.npm import modules_or_skip


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, while npm reaches nobody."""
    settings = {"registry": "http://127.0.0.1:9", "fetch_retries": "0", "cache": str(tmp_path / "npm")}
    for name, value in settings.items():
        monkeypatch.setenv(f"npm_config_{name}", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache" / "holdfast"


def test_tests_are_skipped_loudly_where_packages_cannot_be_fetched(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"typescript": "*"}}')
    (tmp_path / "package-lock.json").write_text('{"lockfileVersion": 3}')

    with pytest.raises(pytest.skip.Exception, match=r"(?s)PEERS NOT TESTED: npm could not fetch it.*ECONNREFUSED"):
        modules_or_skip(tmp_path, "peers")

    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_a_ci_does_not_accept_that_they_are_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match=r"PEERS NOT TESTED: .*package\.json"):
        modules_or_skip(tmp_path, "peers")
