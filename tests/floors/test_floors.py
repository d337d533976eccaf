import sys

import pytest

from tests.floors import floors
from tests.floors.floors import CORE, Floor, Verdict


@pytest.mark.req("ENG-01")
@pytest.mark.soak
@pytest.mark.parametrize("floor", floors.floors(), ids=str)
def test_the_lowest_versions_that_are_allowed_work(floor: Floor) -> None:
    (verdict,) = floors.tried([floor])

    if verdict.missing:
        pytest.skip(f"NOT TESTED: {verdict}")
    assert not verdict.complaint, str(verdict)


def test_the_core_and_every_extra_with_an_adapter_are_tried_on_each_python() -> None:
    assert set(floors.PYTHONS) == {floor.python for floor in floors.floors()}
    assert {CORE, "adk", "langchain", "kafka", "tokens"} <= {floor.extra for floor in floors.floors()}


def test_this_python_is_found_and_one_that_does_not_exist_is_not() -> None:
    assert floors.interpreter_of(f"{sys.version_info.major}.{sys.version_info.minor}") is not None
    assert floors.interpreter_of("3.99") is None


def test_a_python_that_is_missing_is_said_loudly_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(floors, "PYTHONS", ("3.99",))

    code = floors.main([CORE])

    assert code == 0
    assert "SKIPPED  core on Python 3.99: there is no python3.99" in capsys.readouterr().out


def test_a_floor_that_fails_is_printed_with_its_complaint_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [Verdict(Floor("3.11", CORE)), Verdict(Floor("3.11", "adk"), "ModuleNotFoundError: google.adk.errors")]
    monkeypatch.setattr(floors, "tried", lambda chosen: iter(broken))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    code = floors.main([])

    assert code == 1
    printed = capsys.readouterr().out
    assert "works    core on Python 3.11\n" in printed
    assert "FAILS    adk on Python 3.11\nModuleNotFoundError: google.adk.errors" in printed
