import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import Overloaded
from holdfast.core.limits import LimitSettings
from holdfast.core.shares import FairQueue, Holder, Shares, current_holder, set_holder, shared_by_tenant
from holdfast.memory.composition import search_limit

ANN: Holder = ("acme", "ann")
BOB: Holder = ("acme", "bob")
EVE: Holder = ("umbrella", "eve")

pytestmark = pytest.mark.req("SAFE-06")


def shares(total: int = 100) -> Shares:
    return shared_by_tenant(LimitSettings(), "running requests", total, setting="limits.requests")


def fill(places: Shares, holder: Holder) -> int:
    while places.try_acquire(holder):
        pass
    return places.count(holder)


def test_a_user_who_is_alone_takes_nearly_everything() -> None:
    places = shares()

    assert fill(places, ANN) == places.max_per_user == 81
    assert fill(shares(10), ANN) == 9
    assert fill(shares(2), ANN) == 2


@pytest.mark.parametrize(("cores", "alone"), [(1, 1), (2, 1), (4, 3), (16, 13)])
def test_a_tenant_leaves_a_core_free_of_its_searches(cores: int, alone: int) -> None:
    places = search_limit(LimitSettings(), cores=cores)

    assert fill(places, ANN) == alone
    assert places.try_acquire(EVE)


def test_one_search_at_a_time_is_enough() -> None:
    assert fill(search_limit(LimitSettings(searches=1), cores=8), ANN) == 1


def test_another_user_and_another_tenant_find_places_beside_a_greedy_user() -> None:
    places = shares()
    fill(places, ANN)

    assert fill(places, BOB) == 9
    assert fill(places, EVE) == 9


def test_two_who_reserve_no_places_give_none_back() -> None:
    places = shares()

    for change in (places.add, places.add, places.release, places.release):
        change(ANN, 0)

    assert (places.in_use, places.count(ANN)) == (0, 0)


def test_a_tenant_with_many_greedy_users_leaves_places_for_others() -> None:
    places = shares()
    for number in range(200):
        fill(places, ("acme", f"user {number}"))

    assert places.in_use == 90
    assert places.try_acquire(EVE)


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("uvw"), st.booleans()), max_size=300))
def test_counts_stay_true_and_a_newcomer_finds_a_place_whatever_others_did(steps: list[tuple[str, str, bool]]) -> None:
    places, held = shares(64), dict[Holder, int]()
    for tenant, user, takes in steps:
        holder = (tenant, user)
        if takes:
            held[holder] = held.get(holder, 0) + places.try_acquire(holder)
        elif held.get(holder):
            places.release(holder)
            held[holder] -= 1

    assert places.in_use == sum(held.values()) < 64
    assert {holder: places.count(holder) for holder in held} == held
    assert places.try_acquire(("newcomer", "zoe"))


@pytest.mark.parametrize(
    ("taker", "asker", "scope", "setting"),
    [
        ([ANN], ANN, "user", "limits.user_share"),
        ([("acme", str(number)) for number in range(100)], BOB, "tenant", "limits.tenant_share"),
        ([(str(number), "") for number in range(100)], EVE, "all", "limits.requests"),
    ],
)
def test_a_refusal_says_which_limit_was_reached_and_what_raises_it(
    taker: list[Holder], asker: Holder, scope: str, setting: str
) -> None:
    places = shares()
    for _ in range(100):
        for holder in taker:
            places.try_acquire(holder)
    if scope == "all":
        while places.in_use < places.total:
            places.add(("others", ""))

    with pytest.raises(Overloaded) as refused:
        places.acquire(asker)

    assert refused.value.retry_after > 0
    assert refused.value.details["scope"] == scope
    assert refused.value.details["setting"] == setting
    assert refused.value.details["limit"] == "running requests"
    assert setting in refused.value.next
    assert "limits.requests" in refused.value.next


def test_a_queue_takes_turns_between_tenants_and_then_between_users() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(3):
        queue.push(ANN, f"ann {number}")
    queue.push(BOB, "bob")
    queue.push(EVE, "eve")

    order = [found[1] for _ in range(5) if (found := queue.pop())]

    assert order == ["ann 0", "eve", "bob", "ann 1", "ann 2"]
    assert queue.pop() is None


async def test_who_waits_gets_a_place_in_turn() -> None:
    places = shares(1)
    served: list[Holder] = []

    async def work(holder: Holder) -> None:
        async with places.hold(holder):
            served.append(holder)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(holder) for holder in [ANN, ANN, ANN, ANN, EVE]))

    assert served.index(EVE) == 2  # one runs, one was next when she came
    assert places.in_use == places.waiting == 0


async def test_who_waits_too_long_or_gives_up_takes_no_place_along() -> None:
    places = shares(1)
    places.acquire(ANN)

    with pytest.raises(Overloaded, match=r"none was released within 0\.01 seconds"):
        await places.wait(EVE, 0.01)
    waiting = asyncio.create_task(places.wait(EVE))
    await asyncio.sleep(0)
    places.release(ANN)
    waiting.cancel()  # it was its turn just now
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert places.in_use == places.waiting == 0


async def test_tasks_work_for_whoever_started_them() -> None:
    assert current_holder() == ("", "")

    async def started() -> Holder:
        return current_holder()

    async def request() -> Holder:
        set_holder("acme", "ann")
        return await asyncio.create_task(started())

    assert await asyncio.create_task(request()) == ANN
    assert current_holder() == ("", "")
