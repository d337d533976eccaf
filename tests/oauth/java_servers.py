"""Servers in Java for the tests: fetched with Maven, kept in a cache, and ended with the tests."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

import pytest

LOG_TAIL = 4000  # characters of a log that an error shows


class NotFetched(RuntimeError):
    """Maven could not fetch a server."""


def die_with_parent() -> None:
    """End this process when the one that started it ends."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def cached(name: str) -> Path:
    """The folder in the cache for what takes long to make."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "holdfast" / name


def made_or_skip(name: str, cache: Path, make: Callable[[Path], Path]) -> Path:
    """The copy in the cache, made complete in one step: an interrupted or a second one does no harm.

    Where Maven cannot fetch it, such as without a network, tests are skipped, but fail in CI.
    """
    if cache.exists():
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{cache.name}.", dir=cache.parent) as folder:
        try:
            done = make(Path(folder))
        except NotFetched as error:
            _skip(f"{name} NOT TESTED: Maven could not fetch it: {error}")
        with suppress(OSError):  # someone else was first
            done.rename(cache)
    assert cache.exists()
    return cache


def fetch_with_maven(pom: Path, folder: Path) -> None:
    """Put what a program needs into a folder."""
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    try:
        run(["mvn", "-q", "-B", "-f", str(pom), *copy])
    except RuntimeError as error:
        raise NotFetched(str(error)) from None


def run(command: Sequence[str], **environment: str) -> None:
    """Run a program to its end. A failure shows the end of what it says."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed with {done.returncode}:\n{(done.stdout + done.stderr)[-LOG_TAIL:]}")


def missing_programs(*programs: str) -> str:
    """Those of Java and the given programs that this machine does not have, or nothing."""
    return ", ".join(each for each in ("java", *programs) if shutil.which(each) is None)


def skip_without(name: str, lack: str) -> None:
    """Skip a test if something is missing; in CI, fail instead."""
    if lack:
        _skip(f"{name} NOT TESTED: {lack} not found; install what is missing to run these tests")


def _skip(message: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def ask(
    method: str, url: str, *, form: Mapping[str, str] | None = None, body: object = None, token: str | None = None
) -> Any:
    """Send a request, and return the JSON of the answer."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    data: bytes | None = None
    if form is not None:
        data = urlencode(form, quote_via=quote).encode()
    elif body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = response.read()
    except urllib.error.HTTPError as error:
        with error:
            raise RuntimeError(f"{method} {url} was answered with {error.code}: {error.read().decode()}") from None
    return json.loads(answer) if answer else None
