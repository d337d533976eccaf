"""Who of a group reads which partition. Pure: every member works it out alike from the same rows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID


class Slot(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


def share(
    members: Mapping[UUID, Sequence[str]], partitions: Sequence[Slot], owners: Mapping[Slot, UUID]
) -> dict[Slot, UUID]:
    """A member for each partition of the topics it reads: as even as can be, with as few moves as that takes.

    `owners` has who reads what now; a partition whose topic nobody reads is left out.
    """
    readers = {slot: sorted(id for id, topics in members.items() if slot.topic in topics) for slot in partitions}
    slots = sorted(slot for slot, able in readers.items() if able)
    load = dict.fromkeys(sorted(members), 0)
    shared: dict[Slot, UUID] = {}
    for slot in slots:
        owner = owners.get(slot)
        if owner is not None and owner in readers[slot]:
            shared[slot] = owner
            load[owner] += 1
    for slot in slots:
        if slot not in shared:
            shared[slot] = _least(readers[slot], load)
            load[shared[slot]] += 1
    while (move := _next_move(shared, readers, load)) is not None:
        slot, least = move
        load[shared[slot]] -= 1
        load[least] += 1
        shared[slot] = least
    return shared


def _next_move(
    shared: Mapping[Slot, UUID], readers: Mapping[Slot, Sequence[UUID]], load: Mapping[UUID, int]
) -> tuple[Slot, UUID] | None:
    """What evens the load out: from whoever has most, so that nobody gives a partition and gets another for it."""
    for slot in sorted(shared, key=lambda slot: (-load[shared[slot]], slot)):
        least = _least(readers[slot], load)
        if load[shared[slot]] - load[least] > 1:
            return slot, least
    return None


def _least(able: Sequence[UUID], load: Mapping[UUID, int]) -> UUID:
    return min(able, key=lambda id: (load[id], id))
