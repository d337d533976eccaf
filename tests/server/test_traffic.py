import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from holdfast.access.principals import USER_SCOPES, Principal
from holdfast.core.errors import Overloaded
from holdfast.core.ids import TenantId, uuid7
from holdfast.core.limits import LimitSettings
from holdfast.server.request_limits import QUICK, Rate, RequestLimits, RequestSlot

TENANT = TenantId(uuid7())
ANN, BOB = (Principal(TENANT, name, USER_SCOPES) for name in ("ann", "bob"))

pytestmark = pytest.mark.req("ENG-08", "SAFE-06")


@asynccontextmanager
async def arriving(
    traffic: RequestLimits, address: str = "10.0.0.1", seconds: float = 60.0
) -> AsyncGenerator[RequestSlot]:
    """A request of which nobody knows whose it is, and that has so many seconds."""
    async with asyncio.timeout(seconds) as request:
        visit = RequestSlot(traffic, request, address=address)
        try:
            visit.arrive()
            yield visit
        finally:
            visit.leave()


@asynccontextmanager
async def visiting(
    traffic: RequestLimits, caller: Principal = ANN, seconds: float = 60.0
) -> AsyncGenerator[RequestSlot]:
    """A request of a known caller."""
    async with arriving(traffic, seconds=seconds) as visit:
        visit.enter(caller)
        yield visit


def limited(**limits: int) -> RequestLimits:
    return RequestLimits(LimitSettings.model_validate(limits))


async def test_a_request_too_many_is_told_when_to_come_back_and_finds_a_place_later() -> None:
    traffic = limited(requests=1)

    async with visiting(traffic), arriving(traffic) as second:
        with pytest.raises(Overloaded) as refused:
            second.enter(BOB)

    assert refused.value.retry_after == 1
    async with visiting(traffic, BOB):
        pass


async def test_what_is_anonymous_takes_no_place_of_known_callers() -> None:
    traffic = limited(requests=2, anonymous=1, sign_ins=1)

    async with arriving(traffic) as page, arriving(traffic) as login:
        page.enter_unknown()
        login.enter_unknown(sign_in=True)
        async with arriving(traffic) as another:
            with pytest.raises(Overloaded, match="all anonymous requests are in use"):
                another.enter_unknown()
            with pytest.raises(Overloaded, match="all sign-ins are in use"):
                another.enter_unknown(sign_in=True)
        async with visiting(traffic), visiting(traffic):
            assert (traffic.running.in_use, traffic.arriving.in_use) == (2, 0)


async def test_one_address_leaves_anonymous_places_for_others() -> None:
    traffic = limited(anonymous=10)
    async with asyncio.timeout(60) as request:
        visits = [RequestSlot(traffic, request, address="10.0.0.1") for _ in range(10)]
        for visit in visits[:9]:
            visit.enter_unknown()

        with pytest.raises(Overloaded) as refused:
            visits[9].enter_unknown()
        async with arriving(traffic, "10.0.0.2") as other:
            other.enter_unknown()

    assert refused.value.details["setting"] == "limits.address_share"


async def test_a_user_of_many_streams_leaves_some_for_others() -> None:
    traffic = limited(streams=10)
    async with asyncio.timeout(60) as request:  # noqa: ASYNC100 - requests have one
        visits = [RequestSlot(traffic, request) for _ in range(10)]
        for visit in visits:
            visit.enter(ANN)
        for visit in visits[:9]:
            visit.listen()

        with pytest.raises(Overloaded, match="share of the streams"):
            visits[9].listen()
        for visit in visits:
            visit.leave()

    assert traffic.streams.in_use == traffic.running.in_use == 0


async def test_who_listens_keeps_nobody_from_calling() -> None:
    traffic = limited(requests=1, waiting=1, streams=1)

    async with visiting(traffic) as stream:
        stream.listen()
        async with visiting(traffic, BOB) as call:
            with pytest.raises(Overloaded, match="all streams are in use"):
                call.listen()
            call.stay(60)
            async with visiting(traffic) as another:
                assert another.stopping is traffic.stopping


async def test_who_waits_for_an_agent_keeps_no_other_request_from_running() -> None:
    traffic = limited(requests=1, waiting=1)

    async with visiting(traffic) as other:
        other.stay(None)
        async with visiting(traffic) as late:
            with pytest.raises(Overloaded):
                late.stay(None)
            other.stay(60)  # one that stays may stay longer
            other.leave()
            late.stay(None)


async def test_there_are_only_so_many_sockets_and_they_keep_no_request_from_running() -> None:
    traffic = limited(requests=1, sockets=1)

    async with visiting(traffic) as first:
        with first.socket():
            async with visiting(traffic) as second:
                with pytest.raises(Overloaded), second.socket():
                    pass
                assert second.sockets == 1
        async with visiting(traffic) as third:
            with third.socket():
                assert third.sockets == 1


async def test_only_what_takes_its_time_takes_a_place_among_what_lasts() -> None:
    traffic = limited(waiting=1)

    async with visiting(traffic, seconds=2 * QUICK) as slow:  # which would be over before it is done
        with slow.extend_timeout(60):
            await asyncio.sleep(3 * QUICK)
        async with visiting(traffic) as late:
            with late.extend_timeout(60):  # what finds no place has the time that any request has
                await asyncio.sleep(2 * QUICK)
            with pytest.raises(Overloaded):
                late.stay(60)
    async with visiting(traffic) as quick, visiting(traffic) as other:
        with quick.extend_timeout(60):
            other.stay(60)  # the place is free


def test_an_address_signs_in_so_often_a_minute() -> None:
    now = 100.0
    rate = Rate(6, setting="limits.sign_ins_per_minute", clock=lambda: now)
    for _ in range(6):
        rate.take("10.0.0.1")

    with pytest.raises(Overloaded) as refused:
        rate.take("10.0.0.1")
    rate.take("10.0.0.2")
    now += refused.value.retry_after
    rate.take("10.0.0.1")

    assert refused.value.retry_after == pytest.approx(10)
    with pytest.raises(Overloaded):
        rate.take("10.0.0.1")
