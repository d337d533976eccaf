"""Exported chains: verifies a file that `Audit.export` wrote, without the database."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from uuid import UUID

import msgspec

from holdfast.audit.audit import FORMAT, VERSION, Verification
from holdfast.audit.chain import ChainEnd, ChainProgress, Fault, Verifier, link_of
from holdfast.core.errors import InvalidInput

REPORT_EVERY = 10_000  # entries between two reports of progress

Part = TypeVar("Part")
Heads = Callable[[UUID], Mapping[int, bytes]]  # the published heads of a tenant, by its id


class _Header(msgspec.Struct):
    format: str
    version: int
    tenant_id: UUID
    start: ChainProgress


class _End(msgspec.Struct):
    seq: int
    hash: str


class _Footer(msgspec.Struct):
    end: _End


def verify_lines(
    lines: Iterable[bytes], *, heads_of: Heads = lambda _: {}, on_progress: Callable[[int], None] = lambda _: None
) -> Verification:
    """Verify the lines of an exported file.

    `on_progress` is called now and then with the number of verified entries.
    """
    numbered = enumerate(lines, 1)
    _, first = next(numbered, (0, b""))
    header = _decoded(first, _Header, 1)
    if header.format != FORMAT or header.version != VERSION:
        raise InvalidInput("the file is not an exported audit", next="Give a file that `holdfast audit export` wrote.")
    tenant = header.tenant_id
    verifier = Verifier(header.start, heads_of(tenant))
    for number, line in numbered:
        if line.startswith(b'{"end":'):
            end = _decoded(line, _Footer, number).end
            fault = verifier.finish(ChainEnd(end.seq, bytes.fromhex(end.hash)))
            return Verification(tenant, verifier.progress, end.seq, complete=True, fault=fault)
        try:
            link = link_of(line)
        except (msgspec.MsgspecError, ValueError) as error:
            raise _invalid(number, error) from None
        if (fault := verifier.add(link)) is not None:
            return Verification(tenant, verifier.progress, link.seq, complete=False, fault=fault)
        if verifier.progress.verified % REPORT_EVERY == 0:
            on_progress(verifier.progress.verified)
    missing = Fault("missing", verifier.progress.seq + 1, "the end of the file is missing")
    return Verification(tenant, verifier.progress, verifier.progress.seq, complete=False, fault=missing)


def _decoded(line: bytes, kind: type[Part], number: int) -> Part:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise _invalid(number, error) from None


def _invalid(number: int, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"line {number} of the file cannot be read",
        why=str(error),
        next="Give a file that `holdfast audit export` wrote, unchanged.",
    )
