import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.acceptance
def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    package = ROOT / "src" / "holdfast"
    files = {path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file()}
    expected = {name for name in files if "__pycache__" not in name}

    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    run = subprocess.run(build, capture_output=True, text=True)

    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert expected <= set(zipfile.ZipFile(wheel).namelist())
    assert "holdfast/py.typed" in expected
    assert any(name.endswith(".sql") for name in expected)
