"""The chain of a tenant's audit: each entry has a hash that covers the entry and the hash before it.

PostgreSQL computes the hashes when it seals entries (`functions/seal.sql`). This module computes them again to verify
a chain: in the database, or in a file that was exported. Only fixed-length numbers precede the text of the entry, and
the text is hashed as it was written, so that no two entries have the same bytes.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import msgspec

from holdfast.audit.entries import person_hash

FaultKind = Literal["changed", "missing", "inserted", "unsealed"]

RETENTION = "audit.retention"  # the action of the entry that repeats a checkpoint
ERASURE = "audit.erase"  # the action of the entry that says how many entries lost their personal data
WAITS_TOO_LONG = 300.0  # seconds until an entry that is not in the chain is a fault

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class AuditLink(msgspec.Struct, frozen=True):
    """An entry of the chain, with everything that its hash covers. `entry` and `person` are JSON as it was written."""

    seq: int
    id: UUID
    at: datetime
    sealed_at: datetime
    entry: str
    previous: bytes
    hash: bytes
    salt: bytes | None = None
    person: str | None = None


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wrong with a chain, and where: the number of the entry, and its id if there is one."""

    kind: FaultKind
    seq: int
    what: str
    id: UUID | None = None


class ChainEnd(msgspec.Struct, frozen=True):
    """The number and the hash of the last entry of a chain."""

    seq: int
    hash: bytes


class ChainProgress(msgspec.Struct, frozen=True):
    """How far a chain is verified: pass it on to continue. `seq` and `hash` are those of the last entry.

    `verified` is how many entries were. Of them, `erased` have lost their personal data, and `erasures` is how many
    did by the entries that record erasures. If these are too few, `unexplained` is the first entry whose loss they do
    not explain. `attested`: an entry repeats the checkpoint with which the chain begins.
    """

    seq: int
    hash: str
    checkpoint: str = ""
    verified: int = 0
    erased: int = 0
    erasures: int = 0
    unexplained: int = 0
    attested: bool = False


class _Seen(msgspec.Struct):
    """What verification needs to know of an entry."""

    action: str
    target: str = ""
    count: int | None = None
    person: str = ""


_read = msgspec.json.Decoder(_Seen).decode


def origin(tenant: UUID) -> bytes:
    """Return the hash before the first entry of a tenant."""
    return hashlib.sha256(tenant.bytes).digest()


def hash_of(link: AuditLink) -> bytes:
    """Return the hash that an entry should have."""
    numbers = link.seq.to_bytes(8), link.id.bytes, _micros(link.at), _micros(link.sealed_at)
    return hashlib.sha256(b"".join((link.previous, *numbers, link.entry.encode()))).digest()


def beginning(tenant: UUID, checkpoint: ChainEnd | None) -> ChainProgress:
    """Return the progress before the first entry. `checkpoint` is the last entry that retention dropped, if any."""
    if checkpoint is None or not checkpoint.seq:
        return ChainProgress(0, origin(tenant).hex(), attested=True)
    hash = checkpoint.hash.hex()
    return ChainProgress(checkpoint.seq, hash, f"{checkpoint.seq}:{hash}")


class Verifier:
    """Verifies the entries of a chain one after another. `heads` are published hashes by number."""

    def __init__(self, progress: ChainProgress, heads: Mapping[int, bytes] | None = None) -> None:
        self._seq = progress.seq
        self._hash = bytes.fromhex(progress.hash)
        self._checkpoint = progress.checkpoint
        self._verified = progress.verified
        self._erased = progress.erased
        self._erasures = progress.erasures
        self._unexplained = progress.unexplained
        self._attested = progress.attested
        self._heads = heads or {}

    @property
    def progress(self) -> ChainProgress:
        """How far the chain is verified."""
        return ChainProgress(
            self._seq,
            self._hash.hex(),
            self._checkpoint,
            self._verified,
            self._erased,
            self._erasures,
            self._unexplained,
            self._attested,
        )

    def add(self, link: AuditLink) -> Fault | None:
        """Verify the next entry. Return what is wrong with it, if anything."""
        expected = self._seq + 1
        if link.seq < expected:
            return Fault("inserted", link.seq, f"there are two entries with the number {link.seq}", link.id)
        if link.seq > expected:
            return _missing(expected, link.seq - 1)
        right = hash_of(link) == link.hash
        if link.previous != self._hash:
            # If the entry itself is whole, then the one before was replaced together with its hash.
            return self._replaced() if right else _changed(link, "it does not follow from the entry before")
        if not right:
            return _changed(link, "its content does not have its hash")
        if (published := self._heads.get(link.seq)) is not None and published != link.hash:
            return _changed(link, "its hash is not the one that was published: the chain was written anew")
        seen = _read(link.entry)
        if seen.person and link.person is None:
            self._erased += 1
            self._unexplained = self._unexplained or link.seq
        elif link.person is not None and (link.salt is None or person_hash(link.salt, link.person) != seen.person):
            return _changed(link, "its personal data does not have its hash")
        if seen.action == ERASURE:
            self._erasures += seen.count or 0
            if self._erased <= self._erasures:
                self._unexplained = 0
        elif seen.action == RETENTION and seen.target == self._checkpoint:
            self._attested = True
        self._seq, self._hash = link.seq, link.hash
        self._verified += 1
        return None

    def finish(self, end: ChainEnd, *, waits: float = 0.0) -> Fault | None:
        """Verify the end of the chain, after its last entry. `waits`: for how long an entry has not been sealed."""
        if end.seq > self._seq:
            return _missing(self._seq + 1, end.seq)
        if end.seq < self._seq:
            return Fault("inserted", end.seq + 1, f"the chain ends with the entry {end.seq}, but there are more")
        if end.hash != self._hash:
            return self._replaced()
        beyond = max(self._heads, default=0)
        if beyond > self._seq:
            return Fault("missing", self._seq + 1, f"the entry {beyond} was published, and the chain ends before it")
        if not self._attested:
            first = self._checkpoint.partition(":")[0]
            return Fault("missing", int(first), f"the entries up to {first} are missing, and not by retention")
        if self._erased > self._erasures:
            count = self._erased - self._erasures
            what = f"from the entry {self._unexplained} on, personal data of {count} entries was removed, not erased"
            return Fault("missing", self._unexplained, what)
        if waits > WAITS_TOO_LONG:
            return Fault("unsealed", self._seq + 1, f"an entry has not been sealed for {waits:.0f} seconds")
        return None

    def _replaced(self) -> Fault:
        return Fault("changed", self._seq, f"the entry {self._seq} was changed: the next one has another hash for it")


def _missing(first: int, last: int) -> Fault:
    text = f"the entry {first} is" if first == last else f"the entries {first} to {last} are"
    return Fault("missing", first, f"{text} missing")


def _changed(link: AuditLink, why: str) -> Fault:
    return Fault("changed", link.seq, f"the entry {link.seq} was changed: {why}", link.id)


def _micros(at: datetime) -> bytes:
    return ((at - _EPOCH) // _MICROSECOND).to_bytes(8, signed=True)


def line_of(link: AuditLink) -> str:
    """Return an entry as a line of an exported file. Its JSON is in it unchanged, because the hashes cover its text."""
    fields: dict[str, Any] = {
        "seq": link.seq,
        "id": link.id,
        "at": link.at,
        "sealed_at": link.sealed_at,
        "previous": link.previous.hex(),
        "hash": link.hash.hex(),
        "entry": msgspec.Raw(link.entry.encode()),
    }
    if link.person is not None and link.salt is not None:
        fields |= {"salt": link.salt.hex(), "person": msgspec.Raw(link.person.encode())}
    return msgspec.json.encode(fields).decode()


class _Line(msgspec.Struct):
    seq: int
    id: UUID
    at: datetime
    sealed_at: datetime
    previous: str
    hash: str
    entry: msgspec.Raw
    salt: str | None = None
    person: msgspec.Raw = msgspec.Raw(b"")


_read_line = msgspec.json.Decoder(_Line).decode


def link_of(line: str | bytes) -> AuditLink:
    """Return the entry of a line. Raises ValueError or msgspec.MsgspecError if it is none."""
    found = _read_line(line)
    return AuditLink(
        found.seq,
        found.id,
        found.at,
        found.sealed_at,
        bytes(found.entry).decode(),
        bytes.fromhex(found.previous),
        bytes.fromhex(found.hash),
        None if found.salt is None else bytes.fromhex(found.salt),
        bytes(found.person).decode() or None,
    )
