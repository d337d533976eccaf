"""Sources of known models: the Hugging Face hub, and Maven if `mvn` is installed.

Each source downloads the model's files into a draft folder. After an interruption, it gets the same folder again.
"""

import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from holdfast.core.errors import Unavailable
from holdfast.embeddings.known_models import KnownModel, PinnedFile

Progress = Callable[[int, int], None]  # bytes downloaded so far, and bytes in total

REACH_TIMEOUT = 4.0
CHUNK = 256 * 1024
MAVEN_TIMEOUT = 600.0
MAVEN_STEP = 0.2
MAX_ERROR_CHARACTERS = 300  # characters of an error to quote


class DownloadCancelled(BaseException):
    """Raised by `progress` to stop a download. It is not an Exception: that would count as a network error."""


def no_progress(_: int, __: int) -> None:
    """Report nothing."""


def fetch_from_hub(known: KnownModel, draft: Path, progress: Progress, *, endpoint: str | None = None) -> None:
    """Download from the Hugging Face hub, or from the mirror in HF_ENDPOINT; resume an interrupted download."""
    received = 0
    for name, pinned in known.files:
        _download(
            known, pinned, draft / name, lambda count, before=received: progress(before + count, known.bytes), endpoint
        )
        received += pinned.bytes


def fetch_from_maven(known: KnownModel, draft: Path, progress: Progress) -> None:
    """Download a jar with the same files by Maven, which caches it in its local repository."""
    if shutil.which("mvn") is None:
        raise Unavailable("Maven is not installed", why="the program `mvn` was not found")
    with tempfile.TemporaryDirectory(dir=draft) as folder:
        _run_maven(known, folder, progress)
        for jar in Path(folder).glob("*.jar"):
            with zipfile.ZipFile(jar) as archive:
                for name, suffix in (("model.onnx", ".onnx"), ("tokenizer.json", "-tokenizer.json")):
                    inside = next((each for each in archive.namelist() if each.endswith(suffix)), None)
                    if inside is None:
                        raise Unavailable(f"the artifact {known.artifact} has no *{suffix}")
                    with archive.open(inside) as source, (draft / name).open("wb") as target:
                        shutil.copyfileobj(source, target)
    progress(known.bytes, known.bytes)


def _download(
    known: KnownModel, pinned: PinnedFile, target: Path, report: Callable[[int], None], endpoint: str | None
) -> None:
    """Download the rest of a file; retry as long as each attempt makes progress."""
    target.touch()
    while (before := target.stat().st_size) < pinned.bytes:
        try:
            _get(known, pinned, target, report, endpoint)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001
            # The hub's library has changed its HTTP client before, so the classes of its errors are not known.
            why = _one_line(error)
        else:
            why = "the connection was closed"
        if target.stat().st_size == before:
            raise Unavailable("the hub cannot be reached", why=why)


def _get(
    known: KnownModel, pinned: PinnedFile, target: Path, report: Callable[[int], None], endpoint: str | None
) -> None:
    # The library provides URLs, mirrors, tokens and proxies. Its own download cannot resume, and tries for half a
    # minute to reach an unreachable hub.
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session  # pyright: ignore[reportUnknownVariableType]

    start = target.stat().st_size
    address = hf_hub_url(known.repository, pinned.path, revision=known.revision, endpoint=endpoint)
    headers = {**build_hf_headers(), "Range": f"bytes={start}-", "Accept-Encoding": "identity"}
    session = cast(Any, get_session())
    with session.stream("GET", address, headers=headers, follow_redirects=True, timeout=REACH_TIMEOUT) as answer:
        if answer.status_code not in (200, 206):
            raise Unavailable(f"the hub did not return {pinned.path}", why=f"it returned {answer.status_code}")
        start = start if answer.status_code == 206 else 0
        with target.open("r+b") as file:
            file.truncate(start)
            file.seek(start)
            for chunk in answer.iter_bytes(CHUNK):
                file.write(chunk)
                report(file.tell())
                if file.tell() > pinned.bytes:  # it is a different file
                    return


def _run_maven(known: KnownModel, folder: str, progress: Progress) -> None:
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={known.artifact}", f"-DoutputDirectory={folder}"]
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output) as maven,
    ):
        left = MAVEN_TIMEOUT
        try:
            while maven.poll() is None and left > 0:
                progress(0, known.bytes)
                left -= MAVEN_STEP
                _wait(maven)
        finally:
            maven.kill()
        if maven.wait() != 0:
            output.seek(0)
            message = output.read().decode(errors="replace").strip()
            raise Unavailable(
                f"Maven did not download {known.artifact}", why=message[:MAX_ERROR_CHARACTERS] or "it timed out"
            )


def _wait(maven: subprocess.Popen[bytes]) -> None:
    try:
        maven.wait(MAVEN_STEP)
    except subprocess.TimeoutExpired:
        return


def _one_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0][:MAX_ERROR_CHARACTERS]
