"""Lanes: records of all partitions in turns, and no partition that takes the room of the others."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.bus.kafka.lanes import Lanes
from holdfast.bus.kafka.record_format import IncomingRecord

FULL, OTHER = ("orders", 0), ("answers", 3)


def arrival(offset: int, *, bytes: int = 10) -> IncomingRecord:
    """A record of so many bytes."""
    return IncomingRecord(0, offset, None, b"x" * bytes, [], 0)


def filled(lanes: Lanes, **numbers: int) -> Lanes:
    """Lanes with so many records of each topic."""
    for topic, number in numbers.items():
        for offset in range(number):
            lanes.add((topic, 0), 1, arrival(offset))
    return lanes


def test_partitions_take_turns() -> None:
    lanes = filled(Lanes(most=100, most_bytes=100_000), a=5, b=2, c=1)

    taken = [(place[0], one.offset) for place, _, one in lanes.take(100, 100_000)]

    assert taken == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2), ("a", 3), ("a", 4)]
    assert len(lanes) == 0


def test_turns_go_on_where_they_ended() -> None:
    lanes = filled(Lanes(most=100, most_bytes=100_000), a=5, b=5)

    taken = [place[0] for _ in range(3) for place, _, _ in lanes.take(1, 100_000)]

    assert taken == ["a", "b", "a"]


def test_a_record_larger_than_the_room_comes_alone() -> None:
    lanes = Lanes(most=100, most_bytes=100)
    lanes.add(FULL, 1, arrival(0, bytes=500))
    lanes.add(FULL, 1, arrival(1))

    assert [one.offset for _, _, one in lanes.take(10, 50)] == [0]
    assert lanes.take(0, 50) == []


def test_one_partition_leaves_room_for_another_that_has_nothing_yet() -> None:
    lanes = filled(Lanes(most=100, most_bytes=100_000), orders=49)
    assert not lanes.has_its_share(FULL)

    lanes.add(FULL, 1, arrival(49))

    assert lanes.has_its_share(FULL)
    assert not lanes.is_full
    assert not lanes.is_low(FULL)
    lanes.take(40, 100_000)
    assert lanes.is_low(FULL)


def test_dropped_records_free_their_room() -> None:
    lanes = filled(Lanes(most=10, most_bytes=100_000), orders=10)
    assert lanes.is_full

    lanes.drop([FULL, OTHER])

    assert (len(lanes), lanes.is_full, FULL in lanes) == (0, False, False)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300))), st.integers(1, 20), st.integers(1, 500))
def test_everything_comes_once_and_in_the_order_of_its_partition(
    given: list[tuple[int, int]], most: int, most_bytes: int
) -> None:
    lanes = Lanes(most=50, most_bytes=5000)
    for offset, (partition, bytes) in enumerate(given):
        lanes.add(("orders", partition), 1, arrival(offset, bytes=bytes))

    taken: list[tuple[int, int]] = []
    while lanes:
        batch = lanes.take(most, most_bytes)
        assert 0 < len(batch) <= most
        taken += [(place[1], one.offset) for place, _, one in batch]

    assert sorted(offset for _, offset in taken) == list(range(len(given)))
    for partition in range(5):
        own = [offset for number, offset in taken if number == partition]
        assert own == sorted(own)
