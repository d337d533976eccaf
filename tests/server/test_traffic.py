import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from holdfast.access.principals import USER_SCOPES, Principal
from holdfast.core.errors import Overloaded
from holdfast.core.ids import TenantId, uuid7
from holdfast.server.traffic import QUICK, Traffic, Visit

TENANT = TenantId(uuid7())
ANN, BOB = (Principal(TENANT, name, USER_SCOPES) for name in ("ann", "bob"))

pytestmark = pytest.mark.req("ENG-08")


@asynccontextmanager
async def visiting(traffic: Traffic, seconds: float = 60.0) -> AsyncGenerator[Visit]:
    """A request that has so many seconds."""
    async with asyncio.timeout(seconds) as request:
        traffic.enter(request)
        try:
            yield Visit(traffic, request)
        finally:
            traffic.leave(request)


async def test_each_user_listens_so_often_and_no_more() -> None:
    traffic = Traffic(listening=1)

    async with visiting(traffic) as first, visiting(traffic) as second, visiting(traffic) as third:
        first.listen(ANN)
        with pytest.raises(Overloaded, match="listens too often: 1 streams of the user 'ann'"):
            second.listen(ANN)
        third.listen(BOB)

    async with visiting(traffic) as later:
        later.listen(ANN)  # those before have ended


async def test_who_listens_keeps_nobody_from_calling() -> None:
    traffic = Traffic(limit=1, lasting=1)

    async with visiting(traffic) as stream:
        stream.listen(ANN)
        async with visiting(traffic) as call:
            with pytest.raises(Overloaded, match="1 requests listen"):
                call.listen(BOB)
            call.stay(60)
            async with visiting(traffic) as another:
                assert another.stopping is traffic.stopping


async def test_only_what_takes_its_time_takes_a_place_among_what_lasts() -> None:
    traffic = Traffic(lasting=1)

    async with visiting(traffic, 2 * QUICK) as slow:  # which would be over before it is done
        with slow.lasting(60):
            await asyncio.sleep(3 * QUICK)
        async with visiting(traffic) as late:
            with late.lasting(60):  # what finds no place has the time that any request has
                await asyncio.sleep(2 * QUICK)
            with pytest.raises(Overloaded):
                late.stay(60)
    async with visiting(traffic) as quick, visiting(traffic) as other:
        with quick.lasting(60):
            other.stay(60)  # the place is free
