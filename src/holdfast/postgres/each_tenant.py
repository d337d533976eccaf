"""Work for several tenants, one after another. The failure of one tenant does not stop the others."""

import logging
from collections.abc import Awaitable, Callable, Iterable

from holdfast.core.errors import DatabaseAway, HoldfastError
from holdfast.postgres.database import Database, Postgres, Row

log = logging.getLogger(__name__)


async def for_each_tenant(
    postgres: Postgres, tenants: Iterable[Row], work: Callable[[Database], Awaitable[int]], *, name: str
) -> int:
    """Do the work for each tenant, and return the sum of its results. `name` says in the log what failed."""
    done = 0
    for row in tenants:
        try:
            done += await work(postgres.tenant(row["id"]))
        except DatabaseAway:
            raise
        except HoldfastError as error:
            log.warning("the %s failed for %s, trying again later: %s", name, row["id"], error)
        except Exception:
            log.exception("a defect: the %s failed for %s, trying again later", name, row["id"])
    return done


async def in_batches(work: Callable[[], Awaitable[int]], size: int) -> int:
    """Repeat a statement that handles at most `size` rows until it handles fewer. Return how many in all."""
    done = 0
    while True:
        handled = await work()
        done += handled
        if handled < size:
            return done
