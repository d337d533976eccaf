"""Assigns partitions to the members of a group. Pure: every member computes the same result from the same rows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


def assign(
    members: Mapping[UUID, Sequence[str]], partitions: Sequence[TopicPartition], owners: Mapping[TopicPartition, UUID]
) -> dict[TopicPartition, UUID]:
    """Assign each partition to a member that reads its topic: as evenly as possible, with as few moves as possible.

    `owners` is the current assignment. Partitions whose topic no member reads are omitted.
    """
    topics = {slot.topic for slot in partitions}
    readers = {topic: sorted(id for id, reads in members.items() if topic in reads) for topic in topics}
    slots = sorted(slot for slot in partitions if readers[slot.topic])
    has: dict[UUID, list[TopicPartition]] = {id: [] for id in sorted(members)}
    for slot in slots:
        owner = owners.get(slot)
        if owner is not None and owner in readers[slot.topic]:
            has[owner].append(slot)
    shared = {slot for own in has.values() for slot in own}
    for slot in slots:
        if slot not in shared:
            has[_least_loaded(readers[slot.topic], has)].append(slot)
    while (move := _next_move(has, readers)) is not None:
        giver, slot, taker = move
        has[giver].remove(slot)
        has[taker].append(slot)
    return {slot: id for id, own in has.items() for slot in own}


def _next_move(
    has: Mapping[UUID, Sequence[TopicPartition]], readers: Mapping[str, Sequence[UUID]]
) -> tuple[UUID, TopicPartition, UUID] | None:
    """Return a move that balances the load, or None.

    It takes from the member with most partitions, so that no member gives up a partition and gets another one for it.
    """
    fewest = min(map(len, has.values()), default=0)
    for id in sorted(has, key=lambda id: (-len(has[id]), id)):
        if len(has[id]) - fewest < 2:
            return None
        for topic in sorted({slot.topic for slot in has[id]}):
            least = _least_loaded(readers[topic], has)
            if len(has[id]) - len(has[least]) > 1:
                return id, min(slot for slot in has[id] if slot.topic == topic), least
    return None


def _least_loaded(candidates: Sequence[UUID], has: Mapping[UUID, Sequence[TopicPartition]]) -> UUID:
    return min(candidates, key=lambda id: (len(has[id]), id))
