"""Checks the documents of sources, and reloads sources whose documents have changed."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.core.errors import Conflict, HoldfastError
from holdfast.core.text import restore, store
from holdfast.postgres.database import Database, PooledStatements, Row
from holdfast.postgres.sql import statements
from holdfast.skills.request import Backend
from holdfast.skills.sources.schedule import pause_of, retry_after
from holdfast.skills.sources.settings import settings_of
from holdfast.skills.sources.source import FetchedDocument, SourceKind, Validators
from holdfast.skills.sources.sources import MAX_DOCUMENT_BYTES, Sources

LEASE = timedelta(minutes=5)  # of a check: longer than a fetch (60 s) and an import (210 s) can take
REST = 0.5  # seconds between the end of a check and the next one, however often somebody asks
AGAIN = 1.0  # seconds after which a check that met another change is repeated
MAX_ERROR = 1000  # characters
AUTHOR = "holdfast"  # of automatic reloads

# Returns the document of a back end of a kind at an address, of at most some bytes, unless it is a version known.
FetchIfChanged = Callable[[SourceKind, str, Backend, int, Validators], Awaitable[FetchedDocument]]

sql = statements(__name__)


class SourceChecks:
    """Checks the sources of one tenant.

    A check is claimed in a row, so that one node does it. It reads the document and reloads the source if the document
    has changed. If that fails, the source stays as it is, the row has the error, and the check is repeated later.
    """

    def __init__(self, database: Database, system: PooledStatements, sources: Sources, fetch: FetchIfChanged) -> None:
        self._database = database
        self._system = system
        self._sources = sources
        self._fetch = fetch

    async def ask(self, name: str) -> None:
        """Ask that a source is checked soon, by any node, because it may have changed. Unknown names do nothing."""
        await self._database.run(sql("ask_for_check"), store(name))
        await self._system.run(sql("notify_checks"))

    async def claim(self, *, files: bool, limit: int) -> list[Row]:
        """Claim checks that are due, at most `limit`; those of files only if this process can read them."""
        return await self._database.all(sql("claim_checks"), LEASE, files, limit)

    async def claim_one(self, source: UUID) -> Row | None:
        """Claim the check of a source, due or not; None: another process is at it."""
        return await self._database.one(sql("claim_check"), LEASE, source)

    async def check(self, claim: Row) -> bool:
        """Do a claimed check. Return whether the source was reloaded."""
        name, location = claim["name"], restore(claim["location"])
        pause = pause_of(claim["seconds"], self._sources.check_seconds, location)
        settings = settings_of(claim["settings"])
        known: Mapping[str, Any] = claim["validators"] or {}
        is_known = known.get("hash") == _hex(claim["document_hash"])
        validators = Validators(known["etag"], known["last_modified"]) if is_known else Validators()
        written = False
        try:
            fetched = await self._fetch(claim["kind"], location, settings.backend, MAX_DOCUMENT_BYTES, validators)
            if fetched.document is not None:
                digest = hashlib.sha256(fetched.document).digest()
                known = {"hash": digest.hex(), **asdict(fetched.validators)}
                if digest != claim["document_hash"]:
                    version = claim["aggregate_version"]
                    report = await self._sources.reload(
                        name, document=fetched.document, version=version, is_check=True, by=AUTHOR
                    )
                    written = report.written
        except Conflict:  # somebody changed the source meanwhile
            await self._end(claim, AGAIN, claim["validators"], claim["failures"], None)
        except HoldfastError as error:
            await self._fail(claim, pause, str(error))
        except asyncio.CancelledError:  # the process ends: another one can do it now
            await self._end(claim, AGAIN, claim["validators"], claim["failures"], None)
            raise
        except Exception:
            await self._fail(claim, pause, "internal error; the log of the server has the details")
            raise
        else:
            await self._end(claim, pause, known or None, 0, None)
        return written

    async def _fail(self, claim: Row, pause: float | None, error: str) -> None:
        failures = claim["failures"] + 1
        again = retry_after(pause, failures)
        await self._end(claim, again, claim["validators"], failures, store(error[:MAX_ERROR]))

    async def _end(
        self, claim: Row, pause: float | None, validators: Mapping[str, Any] | None, failures: int, error: str | None
    ) -> None:
        source, until = claim["source_id"], claim["claimed_until"]
        await self._database.run(sql("end_check"), source, until, pause, REST, validators, error, failures)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
