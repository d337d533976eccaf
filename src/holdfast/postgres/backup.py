"""Backup and restore, with PostgreSQL's own tools.

A backup is one file: the whole database at one moment, dumped while others write. `finish` can append to the file
before it gets its name; PostgreSQL's tools ignore bytes after the dump.
"""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.errors import AlreadyExists, HoldfastError, InvalidInput, NotFound, Unavailable
from holdfast.postgres.address import for_program
from holdfast.postgres.binaries import find_binaries
from holdfast.postgres.database import open_owner
from holdfast.postgres.migrate import migrate
from holdfast.postgres.options import Options
from holdfast.postgres.sql import statements
from holdfast.postgres.tenancy import ensure_roles, set_definer_owner

Progress = Callable[[str], None]

sql = statements(__name__)


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore."""

    tables: int
    rows: int


async def backup(url: str, file: Path, progress: Progress, *, finish: Callable[[Path], None] | None = None) -> int:
    """Dump the whole database to `file`, and return its size. Never overwrites a file."""
    if file.exists():
        raise _file_exists(file)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    # The owner's policies allow it every row. Without --enable-row-security, pg_dump refuses tables with policies.
    options = ["--format=custom", "--enable-row-security", "--schema=public", "--schema=holdfast", "--extension=vector"]
    try:
        draft.touch(mode=0o600)  # it contains the rows of all tenants
        on_line = _table_reporter(progress, "dumping contents of table ")
        await _run_program("pg_dump", [*options, "--verbose", f"--file={draft}"], url, on_line)
        if finish is not None:
            finish(draft)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        os.link(draft, file)  # unlike a rename, it never overwrites a file
    except FileExistsError as error:
        raise _file_exists(file) from error
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written", why=str(error.strerror), next="Choose another path.") from error
    finally:
        draft.unlink(missing_ok=True)
    return file.stat().st_size


async def restore(url: str, options: Options, file: Path, progress: Progress) -> RestoreResult:
    """Restore a backup into an empty database, all or nothing, and migrate it to this program's schema."""
    if not file.is_file():
        raise NotFound(f"the file {file} does not exist", next="Name a file that `holdfast db backup` has written.")
    async with open_owner(url, options) as owner:
        if await owner.value(sql("has_tables")):
            raise AlreadyExists(
                "the database is not empty",
                why="a restore never overwrites data",
                next="Restore into a new --data folder, or into a new database.",
            )
        await ensure_roles(owner)
        with tempfile.NamedTemporaryFile("w", suffix=".list") as contents:
            contents.write("\n".join(await _contents(file)))
            contents.flush()
            arguments = ["--no-owner", "--exit-on-error", "--single-transaction", f"--use-list={contents.name}"]
            on_line = _table_reporter(progress, "processing data for table ")
            await _run_program("pg_restore", [*arguments, "--verbose", str(file)], url, on_line)
        await migrate(owner)
        await set_definer_owner(owner)  # the role that restores owns everything else
        names = [row["name"] for row in await owner.all(sql("tables"))]
        rows = sum([await owner.value(f"select count(*) from {name}") for name in names])  # noqa: S608 - the catalogue's names, quoted
    return RestoreResult(len(names), rows)


async def _contents(file: Path) -> list[str]:
    """List the contents of a backup, except what every database has and only an administrator may change."""
    lines: list[str] = []
    await _run_program("pg_restore", ["--list", "--file=-", str(file)], None, lines.append)
    excluded = (" SCHEMA - public ", " SCHEMA public ", "COMMENT - EXTENSION ")
    return [line for line in lines if not any(words in line for words in excluded)]


async def _run_program(program: str, arguments: list[str], url: str | None, on_line: Callable[[str], None]) -> None:
    """Run a program of PostgreSQL; call `on_line` for each line of its output. Other users cannot read the password."""
    environment = dict(os.environ)
    if url is not None:
        address, environment = for_program(url)
        arguments = [f"--dbname={address}", *arguments]
    process = await asyncio.create_subprocess_exec(
        find_binaries().path(program),
        *arguments,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    output: list[str] = []
    try:
        async for line in process.stdout:
            text = line.decode(errors="replace").rstrip()
            output.append(text)
            on_line(text)
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        raise _failure(program, output)


def _file_exists(file: Path) -> AlreadyExists:
    return AlreadyExists(
        f"the file {file} already exists", why="a backup never overwrites a file", next="Choose another name."
    )


def _table_reporter(progress: Progress, words: str) -> Callable[[str], None]:
    """Return a callback that reports the table that a program works on."""

    def report(line: str) -> None:
        if words in line:
            progress(line.partition(words)[2].strip('"'))

    return report


def _failure(program: str, output: list[str]) -> HoldfastError:
    errors = [line for line in output if "error:" in line or "fatal:" in line.lower() or "detail:" in line.lower()]
    why = "; ".join(errors or output[-3:])[:1000]
    if "does not appear to be a valid" in why or "unsupported version" in why:
        return InvalidInput(
            "the file is not a backup", why=why, next="Name a file that `holdfast db backup` has written."
        )
    return Unavailable(f"{program} failed", why=why, next="Nothing was changed. Fix the cause and try again.")
