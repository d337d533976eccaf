"""Which files of a folder `holdfast knowledge add` takes."""

from pathlib import Path

import pytest

from holdfast.cli.document_files import find_files


@pytest.mark.parametrize("ending", [".docx", ".docm", ".pptm", ".xlsm", ".EPUB", ".pdf"])
def test_a_binary_file_of_a_format_that_is_read_is_taken(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"report{ending}").write_bytes(b"PK\x03\x04\0\0")

    found = find_files([str(tmp_path)], None, tmp_path)

    assert [file.name for file in found.files] == [f"report{ending}"]


def test_another_binary_file_is_skipped_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")

    found = find_files([str(tmp_path)], None, tmp_path)

    assert (found.files, found.skipped) == ([], {"picture.png": "it is a binary file that no parser reads"})
