"""Who reads which partition: even, sticky, and the same whoever works it out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus.assignment import TopicPartition, assign

pytestmark = pytest.mark.req("BUS-01")

GroupOf = tuple[dict[UUID, list[str]], list[TopicPartition], dict[TopicPartition, UUID]]

ids = st.uuids()
topics = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool) -> GroupOf:
    """Members and what each reads, the partitions, and who had them before: some gone by now, some partitions new."""
    everyone = draw(st.lists(ids, min_size=1, max_size=8, unique=True))
    members = {id: ["a", "b", "c"] if alike else draw(topics) for id in everyone}
    slots = [TopicPartition(topic, number) for topic in "abc" for number in range(draw(st.integers(0, 12)))]
    gone = draw(st.lists(ids, max_size=3, unique=True))
    owners = {slot: owner for slot in slots if (owner := draw(st.none() | st.sampled_from([*everyone, *gone])))}
    return members, slots, owners


def loads(members: Mapping[UUID, Sequence[str]], shared: Mapping[TopicPartition, UUID]) -> list[int]:
    """How many each member has."""
    counts = Counter(shared.values())
    return [counts[id] for id in members]


@given(groups(alike=True))
def test_the_load_is_even_within_one_when_all_read_the_same(
    group: GroupOf,
) -> None:
    members, slots, owners = group

    shared = assign(members, slots, owners)

    assert set(shared) == set(slots)
    assert max(loads(members, shared)) - min(loads(members, shared)) <= 1


@given(groups(alike=True))
def test_only_what_must_move_moves(group: GroupOf) -> None:
    members, slots, owners = group

    shared = assign(members, slots, owners)

    held = sorted((sum(owners.get(slot) == id for slot in slots) for id in members), reverse=True)
    fewest, more = divmod(len(slots), len(members))
    fair = [fewest + (rank < more) for rank in range(len(members))]  # whoever has most keeps most
    surplus = sum(max(0, have - may) for have, may in zip(held, fair, strict=True))
    moved = [slot for slot, owner in owners.items() if owner in members and shared[slot] != owner]
    assert len(moved) == surplus


@given(groups(alike=False))
def test_every_partition_that_someone_reads_has_one_who_reads_its_topic(
    group: GroupOf,
) -> None:
    members, slots, owners = group

    shared = assign(members, slots, owners)

    assert set(shared) == {slot for slot in slots if any(slot.topic in reads for reads in members.values())}
    assert all(slot.topic in members[id] for slot, id in shared.items())


@given(groups(alike=False))
def test_every_member_works_out_the_same(group: GroupOf) -> None:
    members, slots, owners = group

    shared = assign(members, slots, owners)

    assert assign(dict(reversed(members.items())), slots[::-1], dict(reversed(owners.items()))) == shared
    assert assign(members, slots, shared) == shared, "and it stays so"


def test_one_who_joins_gets_its_share_and_the_others_keep_the_rest() -> None:
    one, two, three = (UUID(int=number) for number in (1, 2, 3))
    slots = [TopicPartition("a", number) for number in range(8)]
    owners = {slot: one if slot.partition < 4 else two for slot in slots}

    shared = assign({one: ["a"], two: ["a"], three: ["a"]}, slots, owners)

    assert Counter(shared.values()) == {one: 3, two: 3, three: 2}
    assert all(owner in (owners[slot], three) for slot, owner in shared.items())


def test_nobody_means_nothing() -> None:
    assert assign({}, [TopicPartition("a", 0)], {TopicPartition("a", 0): UUID(int=1)}) == {}
    assert assign({UUID(int=1): ["a"]}, [], {}) == {}
