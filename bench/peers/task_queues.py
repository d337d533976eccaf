"""Task queues in PostgreSQL, set up to be fast: procrastinate and DBOS. Invokers and workers share what is here."""

import importlib
from typing import Any

from peers import CONNECTIONS

CONCURRENCY = 64  # as many as there are invokers at most
POLL = 0.01  # seconds: DBOS has no other way to see that there is work, or that it is done
MISSED = 0.1  # seconds: procrastinate's worker forgets a wake-up that comes while it fetches
QUEUE = "bench"
ANSWERS = "bench_answers"


def procrastinate_app(address: str) -> Any:
    """procrastinate keeps no results: its task answers by a notification, which nobody gets who does not listen."""
    procrastinate: Any = importlib.import_module("procrastinate")
    connector = procrastinate.PsycopgConnector(conninfo=address, min_size=4, max_size=CONNECTIONS)
    app = procrastinate.App(connector=connector)

    @app.task(name="echo", queue=QUEUE)
    async def echo(text: str, reply: str) -> str:  # pyright: ignore[reportUnusedFunction]
        await connector.execute_query_async(f"select pg_notify('{ANSWERS}', %(answer)s)", answer=f"{reply} {text}")
        return text

    return app


def dbos_launched(address: str) -> Any:
    """DBOS in its threads, with a workflow and a queue."""
    dbos: Any = importlib.import_module("dbos").DBOS
    settings = {"name": "bench", "system_database_url": address, "sys_db_pool_size": CONNECTIONS, "log_level": "ERROR"}
    dbos(config={**settings, "max_executor_threads": CONCURRENCY, "use_listen_notify": True})

    @dbos.workflow(name="echo")
    def echo(text: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return text

    dbos.launch()
    dbos.register_queue(QUEUE, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)
    return dbos


def dbos_client(address: str) -> Any:
    """DBOS from outside."""
    client: Any = importlib.import_module("dbos").DBOSClient
    return client(system_database_url=address, system_database_pool_size=CONNECTIONS)
