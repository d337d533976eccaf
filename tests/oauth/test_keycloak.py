"""Tests with Keycloak: what happens where it cannot be had."""

from pathlib import Path

import pytest

from tests.oauth.keycloak import Keycloak, keycloak_or_skip


@pytest.fixture(autouse=True)
def without_keycloak(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without a copy of Keycloak, whose programs are those of a folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("CI", raising=False)
    return programs


def with_programs(folder: Path) -> None:
    """Java, and a Maven without a network."""
    for name, script in {"java": "exit 0", "mvn": "echo 'Unknown host' >&2; exit 1"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o700)


def started(folder: Path) -> Keycloak:
    """What a test run would use."""
    return next(iter(keycloak_or_skip(folder)))


def test_without_java_and_maven_tests_are_skipped_and_say_so(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="KEYCLOAK NOT TESTED: java, mvn not found"):
        started(tmp_path)


def test_without_a_network_tests_are_skipped_and_say_so(tmp_path: Path, without_keycloak: Path) -> None:
    with_programs(without_keycloak)

    with pytest.raises(
        pytest.skip.Exception, match=r"(?s)KEYCLOAK NOT TESTED: Maven could not fetch it: .*Unknown host"
    ):
        started(tmp_path)


@pytest.mark.parametrize("has_programs", [False, True])
def test_in_ci_they_fail_instead(
    tmp_path: Path, without_keycloak: Path, monkeypatch: pytest.MonkeyPatch, has_programs: bool
) -> None:
    monkeypatch.setenv("CI", "true")
    if has_programs:
        with_programs(without_keycloak)

    with pytest.raises(pytest.fail.Exception, match="KEYCLOAK NOT TESTED"):
        started(tmp_path)
