"""The files that sources may name: documents in the folder of the settings, for the default tenant."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.core.errors import Forbidden, InvalidInput, NotFound, TooLarge
from holdfast.core.ids import TenantId
from holdfast.core.threads import run_in_thread

MOST_ABANDONED = 4  # running reads whose callers gave up

FindTenant = Callable[[], Awaitable[TenantId]]


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """The folder of the settings. A name cannot lead out of it, also not by a link. Without a path, it has no files."""

    path: Path | None

    def signature(self, name: str) -> tuple[int, ...] | None:
        """Return what changes when a file is written or replaced; None if there is no such file."""
        try:
            found = self._find(name).stat()
        except (OSError, ValueError, InvalidInput, NotFound):
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a file. Raise TooLarge if it has more than `limit` bytes."""
        try:
            with self._find(name).open("rb") as file:
                content = file.read(limit + 1)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise _file_error(name, why) from None
        if len(content) > limit:
            raise TooLarge("the document is too large", why=f"it has more than {limit:,} bytes", limit=limit)
        return content

    def _find(self, name: str) -> Path:
        if self.path is None:
            next = "Set sources.folder to the folder with the documents, on every node, and restart."
            raise InvalidInput(f"the file {name:.200} cannot be read", why="sources.folder is not set", next=next)
        folder = self.path.resolve()
        found = (folder / name).resolve()
        if not found.is_relative_to(folder):
            raise _file_error(name, "it is outside of sources.folder")
        if not found.is_file():
            raise _file_error(name, "there is no such file in sources.folder")
        return found


class SourceFiles:
    """Reads the files for the sources of one tenant. Only the `owner` may: the files are not for all tenants."""

    def __init__(self, folder: SourceFolder, *, tenant: FindTenant, owner: FindTenant) -> None:
        self._folder = folder
        self._tenant = tenant
        self._owner = owner

    async def read(self, name: str, limit: int) -> bytes:
        """Return the content of a file. Raise TooLarge if it has more than `limit` bytes."""
        if await self._tenant() != await self._owner():
            raise Forbidden(
                f"the file {name:.200} cannot be read",
                why="only sources of the default tenant may name files of the server",
                next="Pass the document, or its URL.",
            )
        read = partial(self._folder.read, name, limit)
        return await run_in_thread(read, name="source file", most_abandoned=MOST_ABANDONED)


def _file_error(name: str, why: str) -> NotFound:
    return NotFound(f"the file {name:.200} cannot be read", why=why, next="Check its name and the folder.")
