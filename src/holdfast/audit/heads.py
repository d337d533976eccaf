"""Published heads: the end of each chain, written outside of the database on a timer.

Whoever can change the database can write a whole chain anew, so that it is consistent. A head that is kept elsewhere
shows it: the entry with its number no longer has its hash.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
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


class PublishedHead(msgspec.Struct, frozen=True):
    """The end of a tenant's chain: the number and the hash of its last entry, and when that was sealed."""

    tenant: str
    tenant_id: UUID
    seq: int
    hash: str
    at: datetime


class HeadPublication(PeriodicJob):
    """Publishes the heads that have changed: to the log, and to a file and a webhook if the settings name them.

    Each process publishes all heads. `post` sends them to the webhook.
    """

    def __init__(self, postgres: Postgres, settings: AuditSettings, post: Post) -> None:
        super().__init__("publication of the audit", pause=60 * settings.publish_minutes, first=FIRST)
        self._postgres = postgres
        self._settings = settings
        self._post = post
        self._published: dict[UUID, int] = {}

    async def step(self) -> None:
        """Publish the heads that have changed since this process last did."""
        rows = await self._postgres.system.all(sql("heads"))
        heads = [
            PublishedHead(row["tenant"], row["tenant_id"], row["seq"], bytes(row["hash"]).hex(), row["sealed_at"])
            for row in rows
            if row["seq"] > self._published.get(row["tenant_id"], 0)
        ]
        if not heads:
            return
        for head in heads:
            log.info("the audit of %s ends with the entry %d: %s", head.tenant, head.seq, head.hash)
        if self._settings.publish_file is not None:
            await run_in_worker(lambda: _append(self._settings.publish_file, heads))
        if self._settings.publish_url is not None:
            await self._post(self._settings.publish_url, {"heads": heads})
        self._published |= {head.tenant_id: head.seq for head in heads}


def _append(path: Path | None, heads: Iterable[PublishedHead]) -> None:
    assert path is not None
    try:
        with path.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(head) + b"\n" for head in heads))
    except OSError as error:
        raise HoldfastError(
            "cannot write the heads of the audit", why=str(error), next="Check audit.publish_file."
        ) from error


def read_heads(lines: Iterable[bytes], tenant: str) -> dict[int, bytes]:
    """Return the published heads of a tenant, given by name or id, by the number of the entry.

    Raises InvalidInput if a line is no head, or if two have different hashes for one entry.
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
            next = "Give a file that `audit.publish_file` names."
            raise InvalidInput(f"line {number} is not a published head", why=str(error), next=next) from None
        if tenant in (head.tenant, str(head.tenant_id)) and found.setdefault(head.seq, hash) != hash:
            raise InvalidInput(
                f"the published heads contradict each other about the entry {head.seq}",
                why=f"the hash in line {number} is not that of an earlier line",
                next="The file or the chain was changed. Compare it with the log and the webhook.",
            )
    return found
