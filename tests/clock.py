"""A clock that tests move; PostgreSQL owns it, so it moves for everyone who uses the test's database."""

from datetime import datetime, timedelta

from holdfast.engine import Engine


class Clock:
    """Runs until it is set, and stands still from then on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def set(self, now: datetime) -> None:
        """It is `now` from here on, on every connection made after this.

        A connection that is in use goes back to the pool with the old time: set the clock while nothing else runs.
        """
        async with self._engine.postgres.owner() as owner:
            name = await owner.value("select quote_ident(current_database())")
            await owner.script(f"alter database {name} set holdfast.now = '{now.isoformat()}'")
        self._engine.postgres.clear()

    async def stop(self) -> None:
        """Stand still at this moment: scores of two searches can then be compared exactly."""
        await self.set(await self._engine.database.now())

    async def advance(self, by: timedelta) -> datetime:
        """Move on by `by`; the new time."""
        now = await self._engine.database.now() + by
        await self.set(now)
        return now
