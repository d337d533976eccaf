from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from holdfast.core.config import Config
from holdfast.core.reference import settings_page
from tests.rules.settings_page import PAGE, undocumented, unexplained_settings, unread_settings
from tests.rules.tree import ROOT, plant

pytestmark = pytest.mark.req("ENG-06")

ROW = next(line for line in settings_page().splitlines(keepends=True) if line.startswith("| `server.port` |"))


class Planted(BaseModel):
    told: int = Field(1, description="What it means.")
    silent: int = 2


def test_every_setting_is_documented() -> None:
    assert undocumented(ROOT) == []
    assert unexplained_settings(Config) == []


@pytest.mark.parametrize(
    ("instead", "violations"),
    [("", 1), (ROW.replace("4600", "4700"), 2), (ROW + "| `server.prot` | | | |\n", 1), (ROW * 2, 1)],
)
def test_a_page_that_differs_from_the_settings_is_found(tmp_path: Path, instead: str, violations: int) -> None:
    plant(tmp_path, PAGE, settings_page().replace(ROW, instead))

    found = undocumented(tmp_path)

    assert len(found) == violations


def test_a_setting_without_a_meaning_is_found() -> None:
    found = unexplained_settings(Planted)

    assert len(found) == 1
    assert found[0].startswith("silent: ")


def test_every_setting_is_read_by_something() -> None:
    assert unread_settings(Config, ROOT) == []


def test_a_setting_that_nothing_reads_is_found(tmp_path: Path) -> None:
    plant(tmp_path, "src/holdfast/reader.py", "print(settings.told)\n")

    assert unread_settings(Planted, tmp_path) == ["silent: nothing reads it; remove it until something does"]
