"""Published heads: the end of each chain, written outside of the database on a timer.

Whoever can change the database can write a whole chain anew, so that it is consistent. A head that is kept elsewhere
shows it: the entry with its number no longer has its hash.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from holdfast.core.audit_settings import AuditSettings
from holdfast.core.background import PeriodicJob
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.threads import run_in_worker
from holdfast.postgres.database import Postgres
from holdfast.postgres.sql import statements

FIRST = 5.0  # seconds before the first publication

Post = Callable[[str, Any], Awaitable[None]]  # sends JSON to an address

sql = statements(__name__)
log = logging.getLogger(__name__)
log.setLevel(logging.INFO)  # the log is a place of publication, also where otherwise only warnings are logged


class PublishedHead(msgspec.Struct, frozen=True):
    """The end of a tenant's chain: the number and the hash of its last entry, and when that was sealed."""

    tenant: str
    tenant_id: UUID
    seq: int
    hash: str
    at: datetime


class _Place:
    """A place where heads are published, and the last head of each tenant there."""

    def __init__(self, send: Callable[[Sequence[PublishedHead]], Awaitable[None]]) -> None:
        self._send = send
        self._published: dict[UUID, int] = {}

    async def publish(self, heads: Sequence[PublishedHead]) -> None:
        """Publish the heads that have changed since they were last published here."""
        changed = [head for head in heads if head.seq > self._published.get(head.tenant_id, 0)]
        if changed:
            await self._send(changed)
            self._published |= {head.tenant_id: head.seq for head in changed}


class HeadPublication(PeriodicJob):
    """Publishes the heads that have changed: to the log, and to a file and a webhook if the settings name them.

    Each process publishes all heads. `post` sends them to the webhook. If one place fails, the others still get them.
    """

    def __init__(self, postgres: Postgres, settings: AuditSettings, post: Post) -> None:
        super().__init__("publication of the audit", pause=60 * settings.publish_minutes, first=FIRST)
        self._postgres = postgres
        self._places = [_Place(_log)]
        if (file := settings.publish_file) is not None:
            self._places.append(_Place(lambda heads: run_in_worker(lambda: _append(file, heads))))
        if (url := settings.publish_url) is not None:
            self._places.append(_Place(lambda heads: post(url, {"heads": heads})))

    async def step(self) -> None:
        """Publish the heads that have changed since this process last did."""
        heads = [
            PublishedHead(row["tenant"], row["tenant_id"], row["seq"], bytes(row["hash"]).hex(), row["sealed_at"])
            for row in await self._postgres.system.all(sql("heads"))
        ]
        failures: list[HoldfastError] = []
        for place in self._places:
            try:
                await place.publish(heads)
            except HoldfastError as error:
                failures.append(error)
        for failure in failures[1:]:
            log.warning("the publication of the audit failed; retrying later: %s", failure)
        if failures:
            raise failures[0]


async def _log(heads: Sequence[PublishedHead]) -> None:
    for head in heads:
        log.info("the audit of %s ends with the entry %d: %s", head.tenant, head.seq, head.hash)


def _append(path: Path, heads: Sequence[PublishedHead]) -> None:
    lines = b"".join(msgspec.json.encode(head) + b"\n" for head in heads)
    try:
        with path.open("a+b") as file:
            if file.tell():  # a process died, or the disk was full, within a line: begin another
                file.seek(-1, os.SEEK_END)
                lines = lines if file.read(1) == b"\n" else b"\n" + lines
            file.write(lines)
    except OSError as error:
        raise HoldfastError(
            "cannot write the heads of the audit", why=str(error), next="Check audit.publish_file."
        ) from error


def read_heads(lines: Iterable[bytes], tenant_id: UUID) -> dict[int, bytes]:
    """Return the published heads of a tenant, by the number of the entry.

    Raises InvalidInput if a line is no head, if two have different hashes for one entry, or if there is no head.
    """
    decoder = msgspec.json.Decoder(PublishedHead)
    found: dict[int, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            head = decoder.decode(line)
            hash = bytes.fromhex(head.hash)
        except (msgspec.MsgspecError, ValueError) as error:
            next = "Give a file that `audit.publish_file` names. Remove a line that was not written to its end."
            raise InvalidInput(f"line {number} is not a published head", why=str(error), next=next) from None
        if head.tenant_id == tenant_id and found.setdefault(head.seq, hash) != hash:
            raise InvalidInput(
                f"the published heads contradict each other about the entry {head.seq}",
                why=f"the hash in line {number} is not that of an earlier line",
                next="The file or the chain was changed. Compare it with the log and the webhook.",
            )
    if not found:
        raise InvalidInput(
            "the file has no published head of this audit",
            why=f"no line is of the tenant {tenant_id}",
            next="Give the file of this installation, as `audit.publish_file` names it.",
        )
    return found
