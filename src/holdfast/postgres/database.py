"""Runs statements, for one tenant at a time.

Every statement belongs to a role. `Postgres.tenant(id)` returns a tenant's `Database`, which sends the tenant as the
first parameter of every statement. `Postgres.system` runs the few statements across tenants, `Postgres.owner()` those
that change the schema. Only this module uses the driver.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from holdfast.core.errors import Broken, HoldfastError
from holdfast.core.ids import TenantId
from holdfast.core.shares import NOBODY, Holder, current_holder
from holdfast.core.text import dumps, loads
from holdfast.postgres.address import Hosts, hosts_of
from holdfast.postgres.codecs import decode_halfvec, decode_vector, encode_halfvec, encode_vector
from holdfast.postgres.database_errors import LOST_A_RACE, NOT_YET, is_lost, is_unsent, sqlstate, translate, unreachable
from holdfast.postgres.listener import Listener, Wake
from holdfast.postgres.options import Options
from holdfast.postgres.pool import Pool, PooledConnection
from holdfast.postgres.retries import TRIES, RetryQueue, back_off

Row = asyncpg.Record
Isolation = Literal["read committed", "repeatable read", "serializable"]
TenantSource = TenantId | Callable[[], Awaitable[TenantId]]
Result = TypeVar("Result")

_connect_driver = cast(Callable[..., Awaitable[Any]], asyncpg.connect)

log = logging.getLogger(__name__)
SYSTEM_POOL_SIZE = 4
SETTLING = 5  # seconds for a cancelled statement to end
JSONB_VERSION = b"\x01"  # the first byte of a binary jsonb
BIND = "select set_config('holdfast.tenant', $1, false)"
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class Statements(ABC):
    """Runs statements as one role. Each method is one round trip."""

    _lead: tuple[object, ...] = ()  # parameters before the caller's

    def one(self, statement: str, *args: object) -> Coroutine[Any, Any, Row | None]:
        """Return the first row, if any."""
        return self._call("fetchrow", statement, args)

    def all(self, statement: str, *args: object) -> Coroutine[Any, Any, list[Row]]:
        """Return all rows."""
        return self._call("fetch", statement, args)

    def value(self, statement: str, *args: object) -> Coroutine[Any, Any, Any]:
        """Return the first column of the first row, or None."""
        return self._call("fetchval", statement, args)

    async def run(self, statement: str, *args: object) -> int:
        """Run a statement, and return the number of affected rows."""
        status: str = await self._call("execute", statement, args)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement once for each row of parameters: all of them or none."""
        await self._call("executemany", statement, ([(*self._lead, *row) for row in rows],), lead=False)

    async def now(self) -> datetime:
        """Return the current time, by the database's clock."""
        return cast(datetime, await self._call("fetchval", "select holdfast.now()", (), lead=False))

    @abstractmethod
    async def _call(self, method: str, statement: str, args: tuple[Any, ...], *, lead: bool = True) -> Any: ...


class Transaction(Statements):
    """A transaction: its statements take effect together at the commit, or not at all."""

    def __init__(self, connection: Any, lead: tuple[object, ...]) -> None:
        self._connection = connection
        self._lead = lead
        self._savepoints = 0
        self.ended = False
        self.after_commit: list[Callable[[], None]] = []  # called after the commit

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        """Roll back only the statements inside of the block if they fail, not the whole transaction."""
        self._savepoints += 1
        name = f"savepoint_{self._savepoints}"
        await self._send(f"savepoint {name}")
        try:
            yield
        except BaseException:
            await self._send(f"rollback to savepoint {name}")
            raise
        await self._send(f"release savepoint {name}")

    async def _send(self, statement: str) -> None:
        await self._call("execute", statement, (), lead=False)

    async def _call(self, method: str, statement: str, args: tuple[Any, ...], *, lead: bool = True) -> Any:
        if self.ended:  # another caller may have the connection by now
            raise Broken("the transaction has ended", why="a statement was sent after its end", next="Open a new one.")
        if lead:
            args = (*self._lead, *args)
        try:
            return await getattr(self._connection, method)(statement, *args)
        except DRIVER_ERRORS as error:
            raise _failure(self._connection, error) from error


class PooledStatements(Statements):
    """Runs statements on connections of a pool, each in its own transaction unless `transaction` is used."""

    _name: str | None = None  # of the tenant that a connection is bound to

    def __init__(self, pool: Pool[Any], *, opening: str | None) -> None:
        self._pool = pool
        self._opening: str | None = opening  # transaction mode: sets role and tenant at the start of every transaction
        self._retry_queue = RetryQueue()
        self._source: Callable[[], Awaitable[TenantId]] | None = None

    def transaction(self, *, isolation: Isolation = "read committed") -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction. An exception in the block rolls it back."""
        return self._transaction(isolation)

    async def atomically(
        self, work: Callable[[Transaction], Awaitable[Result]], *, isolation: Isolation = "read committed"
    ) -> Result:
        """Run `work` in a transaction. Retry it from the start after a deadlock or a serialization failure.

        Retries of one process run one after another, so they cannot conflict with each other again.
        """
        for attempt in range(TRIES):
            try:
                async with self._retry_queue.attempt(attempt), self.transaction(isolation=isolation) as tx:
                    return await work(tx)
            except HoldfastError as error:
                if error.details.get("sqlstate") not in LOST_A_RACE or attempt == TRIES - 1:
                    raise
            await back_off(attempt)
        raise AssertionError

    async def _call(self, method: str, statement: str, args: tuple[Any, ...], *, lead: bool = True) -> Any:
        if self._source is not None:
            await self._find_tenant()
        if self._opening is not None:
            return await self._call_in_transaction(method, statement, args, lead=lead)
        if lead:
            args = (*self._lead, *args)
        attempt = 0
        while True:
            link = self._pool.try_acquire_bound(self._name, self._holder()) or await self._acquire()
            try:
                return await getattr(link.connection, method)(statement, *args)
            except DRIVER_ERRORS as error:
                if isinstance(error, TimeoutError):  # ours, not the server's: it may still be working
                    await _wait_for_end(link.connection)
                failure = _failure(link.connection, error)
                if is_unsent(error):  # it was lost while it was idle, so that others may be lost, too
                    self._pool.clear()
                attempt += 1
                if not (sqlstate(error) in LOST_A_RACE or is_unsent(error)) or attempt == TRIES:
                    raise failure from error
            except asyncio.CancelledError:
                await _wait_for_end(link.connection)
                raise
            finally:
                self._pool.release(link)
            await back_off(attempt)

    async def _call_in_transaction(self, method: str, statement: str, args: tuple[Any, ...], *, lead: bool) -> Any:
        async def work(tx: Transaction) -> Any:
            return await tx._call(method, statement, args, lead=lead)  # pyright: ignore[reportPrivateUsage]

        return await self.atomically(work)

    @asynccontextmanager
    async def _transaction(self, isolation: Isolation) -> AsyncGenerator[Transaction]:
        link = await self._begin(isolation)
        connection = link.connection
        tx = Transaction(connection, self._lead)
        try:
            yield tx
            try:
                outcome = await connection.execute("commit")
            except DRIVER_ERRORS as error:
                raise _failure(connection, error) from error
            if outcome != "COMMIT":
                raise Broken(
                    "the transaction was rolled back",
                    why="a statement in it failed, and its error was ignored",
                    next="Let the exception leave the transaction, or use a savepoint.",
                )
            for callback in tx.after_commit:
                callback()
        finally:
            tx.ended = True
            await self._end(link)

    async def _begin(self, isolation: Isolation) -> PooledConnection[Any]:
        begin = "begin" if isolation == "read committed" else f"begin isolation level {isolation}"
        opening = f"{begin}; {self._opening}" if self._opening else begin
        for left in reversed(range(TRIES)):
            link = await self._acquire()
            if await self._send_opening(link, opening, again=left > 0):
                return link
        raise AssertionError

    async def _send_opening(self, link: PooledConnection[Any], first: str, *args: object, again: bool) -> bool:
        """Send the statements before the caller's. Return False if the connection is lost and `again` is set."""
        try:
            await link.connection.execute(first, *args)
        except BaseException as error:
            self._pool.discard(link)
            if isinstance(error, DRIVER_ERRORS):
                if again and is_lost(error):
                    self._pool.clear()  # others may be lost, too
                    return False
                raise translate(error) from error
            raise
        return True

    async def _end(self, link: PooledConnection[Any]) -> None:
        """Return the connection to the pool, without an open transaction."""
        try:
            if not link.connection.is_closed() and link.connection.is_in_transaction():
                await link.connection.execute("rollback")
        except DRIVER_ERRORS:  # without a connection there is nothing to roll back
            self._pool.discard(link)
            return
        except BaseException:
            self._pool.discard(link)
            raise
        self._pool.release(link)

    async def _acquire(self) -> PooledConnection[Any]:
        return await self._pool.acquire(None, self._holder())

    def _holder(self) -> Holder:
        """Return the holder whose share the connection takes. The system's statements have none."""
        return NOBODY

    async def _find_tenant(self) -> None:
        """Do nothing: the system's statements have no tenant."""


class Database(PooledStatements):
    """Runs the statements of one tenant. The tenant is `$1` of each."""

    def __init__(self, pool: Pool[Any], tenant: TenantSource, options: Options) -> None:
        super().__init__(pool, opening=None)
        self._options = options
        self._tenant: TenantId | None = None
        if callable(tenant):
            self._source = tenant
        else:
            self._bind(tenant)

    async def tenant(self) -> TenantId:
        """Return the tenant."""
        if self._source is not None:
            await self._find_tenant()
        assert self._tenant is not None
        return self._tenant

    async def within(self, tx: Transaction | None) -> Statements:
        """Return `tx`, or this database without one. Raise Broken if the transaction is another tenant's."""
        if tx is not None and tx._lead != (await self.tenant(),):  # pyright: ignore[reportPrivateUsage]
            raise Broken(
                "the transaction belongs to another tenant", next="Open one with `transaction` of the same engine."
            )
        return self if tx is None else tx

    async def _find_tenant(self) -> None:
        if self._source is not None:
            self._bind(await self._source())

    def _bind(self, tenant: TenantId) -> None:
        self._tenant = tenant
        self._source = None
        self._lead = (tenant,)
        self._name = str(tenant)
        self._opening = self._options.opening(tenant)

    async def many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement once for each row of parameters: all of them or none."""
        await self.tenant()
        await super().many(statement, rows)

    async def _acquire(self) -> PooledConnection[Any]:
        if self._source is not None:
            await self.tenant()
        if self._opening is not None:
            return await self._pool.acquire(None, self._holder())
        for left in reversed(range(TRIES)):
            link = await self._pool.acquire(self._name, self._holder())
            if link.tenant == self._name or await self._send_opening(link, BIND, self._name, again=left > 0):
                link.tenant = self._name
                return link
        raise AssertionError

    def _holder(self) -> Holder:
        """Return the user that this task works for, if it is a user of this tenant; otherwise the tenant itself."""
        holder = current_holder()
        return holder if holder[0] == self._name else (self._name or "", "")


class OwnerConnection(Statements):
    """Runs statements as the schema's owner, on a separate connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def script(self, text: str) -> None:
        """Run several statements, without parameters."""
        try:
            await self._connection.execute(text)
        except DRIVER_ERRORS as error:
            raise translate(error) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Run the statements of the block in a transaction."""
        await self.script("begin")
        try:
            yield
        except BaseException:
            with suppress(HoldfastError):  # without a connection there is nothing to roll back
                await self.script("rollback")
            raise
        await self.script("commit")

    async def _call(self, method: str, statement: str, args: tuple[Any, ...], *, lead: bool = True) -> Any:
        try:
            return await getattr(self._connection, method)(statement, *args)
        except DRIVER_ERRORS as error:
            raise translate(error) from error


class Postgres:
    """A PostgreSQL server: its connection pools, and access to it by role."""

    def __init__(self, url: str, options: Options, *, owner_url: str, listen_url: str | None = None) -> None:
        self._owner_url = owner_url
        self._options = options
        opening = "set local role holdfast_system" if options.tenancy == "transaction" else None
        system_places, wait = (
            replace(options, pool_size=SYSTEM_POOL_SIZE, tenant_share=1, user_share=1).places(),
            options.acquire_timeout,
        )
        self._pool = Pool(lambda: _open_link(url, options, "holdfast_app"), options.places(), timeout=wait)
        self._system_pool = Pool(lambda: _open_link(url, options, "holdfast_system"), system_places, timeout=wait)
        self._listener = Listener(lambda: _connect(listen_url or url, options, None))
        self.system = PooledStatements(self._system_pool, opening=opening)

    def tenant(self, tenant: TenantSource) -> Database:
        """Return the database of a tenant, given by its id or by a function that the first statement calls."""
        return Database(self._pool, tenant, self._options)

    def owner(self) -> AbstractAsyncContextManager[OwnerConnection]:
        """Connect as the schema's owner, for index builds and partitions."""
        return open_owner(self._owner_url, self._options)

    def listen(self, *channels: str) -> AbstractAsyncContextManager[Wake]:
        """Yield an event that is set when a channel is notified, or may have been while the connection was lost."""
        return self._listener.listen(*channels)

    def clear(self) -> None:
        """Close idle connections, so that new ones get changed settings of the server."""
        self._pool.clear()
        self._system_pool.clear()

    async def close(self) -> None:
        """Close all connections; those in use, when they are returned."""
        await self._listener.close()
        await self._pool.close()
        await self._system_pool.close()


OpenOwner = Callable[[], AbstractAsyncContextManager[OwnerConnection]]  # opens a connection as the schema's owner


@asynccontextmanager
async def open_owner(url: str, options: Options) -> AsyncGenerator[OwnerConnection]:
    """Connect as the schema's owner, without a statement timeout."""
    connection = await _connect(url, replace(options, statement_timeout=None), None)
    try:
        yield OwnerConnection(connection)
    finally:
        await connection.close(timeout=5)


async def _open_link(url: str, options: Options, role: str) -> PooledConnection[Any]:
    connection = await _connect(url, options, role)
    try:
        for name, encode, decode in (
            ("vector", encode_vector, decode_vector),
            ("halfvec", encode_halfvec, decode_halfvec),
        ):
            await connection.set_type_codec(
                name, schema=await _vector_schema(connection), encoder=encode, decoder=decode, format="binary"
            )
        if connection.is_closed():
            raise ConnectionResetError("the server closed the connection")
    except BaseException as error:
        connection.terminate()
        if isinstance(error, DRIVER_ERRORS):
            raise translate(error) from error
        raise
    return PooledConnection(connection, connection._transport.get_extra_info("socket").fileno())


async def _vector_schema(connection: Any) -> str:
    query = "select nspname from pg_extension e join pg_namespace n on n.oid = extnamespace where extname = 'vector'"
    return cast(str, await connection.fetchval(query))


async def _connect(url: str, options: Options, role: str | None) -> Any:
    """Open a connection. Wait for a server that is starting, and start the embedded server if it does not run."""
    settings = {"application_name": "holdfast"}
    timeout = options.statement_timeout
    if options.revive is not None and options.tenancy == "connection" and timeout is not None:
        # The embedded server enforces the timeout itself: a timer in this process costs a sixth of a statement.
        settings["statement_timeout"], timeout = f"{1000 * timeout:.0f}", None
    if role is not None and options.tenancy == "connection":
        settings["role"] = role
        settings |= options.lock_settings
    deadline = asyncio.get_running_loop().time() + options.connect_timeout
    attempt = 0
    while True:
        try:
            connection = await _connect_to_any(
                hosts_of(url), options, command_timeout=timeout, server_settings=settings
            )
            return await _set_codecs(connection)
        except (*DRIVER_ERRORS, TimeoutError) as error:
            ours = options.revive is not None and is_lost(error)
            if not (ours or sqlstate(error) in NOT_YET) or asyncio.get_running_loop().time() > deadline:
                raise unreachable(error) from error
        if options.revive is not None:
            await options.revive()
        await back_off(attempt)
        attempt += 1


async def _connect_to_any(hosts: Hosts, options: Options, **settings: Any) -> Any:
    """Connect to the first host that answers. Each host has a timeout, so one that hangs does not use up the time."""
    *others, last = hosts.order()
    timeout = min(options.connect_timeout, options.host_timeout) if others else options.connect_timeout
    for url in (*others, last):
        try:
            cached = options.statement_cache_size
            connection = await _connect_driver(url, timeout=timeout, statement_cache_size=cached, **settings)
        except (*DRIVER_ERRORS, TimeoutError) as error:
            silent = isinstance(error, (OSError, asyncpg.TargetServerAttributeNotMatched)) or is_lost(error)
            if url is last or not (silent or sqlstate(error) in NOT_YET):  # like libpq
                raise
            hosts.mark_failed(url)
            log.warning("a host of the database does not respond; trying the next one: %r", error)
        else:
            hosts.mark_reachable(url)
            return connection
    raise AssertionError


async def _set_codecs(connection: Any) -> Any:
    try:
        # The binary format, because the driver passes composite values only if all their parts are binary.
        await connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=_encode_jsonb, decoder=_decode_jsonb, format="binary"
        )
    except BaseException:  # most often a cancellation: nothing else closes the connection
        connection.terminate()
        raise
    return connection


class _RefusedError(asyncpg.InternalClientError):
    """Carries our own error through the driver, which would otherwise wrap it in an error that shows the value."""

    def __init__(self, refusal: HoldfastError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def _encode_jsonb(value: object) -> bytes:
    try:
        return JSONB_VERSION + dumps(value).encode()
    except HoldfastError as refusal:
        raise _RefusedError(refusal) from None


def _decode_jsonb(data: bytes) -> Any:
    return loads(data[len(JSONB_VERSION) :])


def _failure(connection: Any, error: BaseException) -> HoldfastError:
    """Return the error for callers. Close a lost connection, which the driver treats as open until it reads the end."""
    if is_lost(error):
        connection.terminate()
    return translate(error)


async def _wait_for_end(connection: Any) -> None:
    """Wait until a cancelled statement has ended: it takes effect before the caller continues, or never."""
    try:
        async with asyncio.timeout(SETTLING):
            await connection.execute("select 1")  # the driver cancels the statement, and sends this when it has ended
    except (*DRIVER_ERRORS, TimeoutError):
        connection.terminate()
    except asyncio.CancelledError:
        connection.terminate()
        raise
