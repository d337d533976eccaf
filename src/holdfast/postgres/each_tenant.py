"""Work for several tenants, one after another. The failure of one tenant does not stop the others."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.core.ids import TenantId
from holdfast.postgres.database import Database, Postgres, Row

log = logging.getLogger(__name__)


async def for_each_tenant(
    postgres: Postgres, tenants: Iterable[Row], work: Callable[[Database], Awaitable[int]], *, name: str
) -> int:
    """Do the work for each tenant, and return the sum of its results. `name` says in the log what failed."""
    return sum([await _try(partial(work, postgres.tenant(row["id"])), row["id"], name) for row in tenants])


async def in_turns(tenants: Iterable[TenantId], work: Callable[[TenantId], Awaitable[int]], *, name: str) -> int:
    """Do one batch of work for each tenant in turn, until no tenant has more. Return the sum of the results."""
    waiting, done = deque(tenants), 0
    while waiting:
        tenant = waiting.popleft()
        handled = await _try(partial(work, tenant), tenant, name)
        done += handled
        if handled:
            waiting.append(tenant)
    return done


async def _try(work: Callable[[], Awaitable[int]], tenant: TenantId, name: str) -> int:
    try:
        return await work()
    except DatabaseAway:
        raise
    except HoldfastError as error:
        log.warning("the %s failed for %s; retrying later: %s", name, tenant, error)
    except Exception:
        log.exception("internal error: the %s failed for %s; retrying later", name, tenant)
    return 0


async def in_batches(work: Callable[[], Awaitable[int]], size: int) -> int:
    """Repeat a statement that handles at most `size` rows until it handles fewer. Return how many in all."""
    done = 0
    while True:
        handled = await work()
        done += handled
        if handled < size:
            return done
