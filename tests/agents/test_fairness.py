"""Many runs of one user leave room for others: of the same tenant, and of other tenants."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest

from holdfast import App
from holdfast.agents import Agent, Incoming
from holdfast.agents.runs import Sent
from holdfast.engine import Engine
from tests.agents.stage import Stage, answer, ended, met

pytestmark = pytest.mark.req("SAFE-06", "AGENT-01")

LEASE = timedelta(seconds=60)


class Patients:
    """A program whose agent answers when it is let go, and knows for whom it works."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.running: list[str] = []

    def app(self) -> App:
        app = App()

        @app.system("support")
        async def support(incoming: Incoming) -> str:
            """Wait."""
            self.running.append(incoming.text)
            if incoming.text.startswith("slow"):
                await self.open.wait()
            return "Done."

        return app


@pytest.fixture
def patients() -> Patients:
    return Patients()


@asynccontextmanager
async def flooded(stage: Stage, patients: Patients) -> AsyncGenerator[tuple[Engine, list[Sent]]]:
    """An engine with places for twenty runs, of which one user wants forty; it serves another tenant, too."""
    engine = await stage.open(agents_concurrency=20)
    await engine.tenants.create("acme")
    async with AsyncExitStack() as stack:
        for tenant in ("default", "acme"):
            own = engine.tenant(await engine.tenants.id_of(tenant))
            await stack.enter_async_context(own.serving(patients.app()))
        own = engine.tenant(await engine.tenants.id_of("default"))
        slow = [
            await own.agents.send("support", f"slow {number}", user="eve", session_id=f"s{number}")
            for number in range(40)
        ]
        await met(lambda: len(patients.running) == 17)
        yield engine, slow
        patients.open.set()


async def test_runs_of_others_begin_at_once_while_one_user_wants_more_than_there_is_room_for(
    stage: Stage, patients: Patients
) -> None:
    async with flooded(stage, patients) as (engine, slow):
        for tenant, user in (("default", "ann"), ("acme", "bob"), ("acme", "eve")):
            own = engine.tenant(await engine.tenants.id_of(tenant))
            assert answer(await ended(own, await own.agents.send("support", "Hello", user=user))) == "Done."

        assert len([message for message in patients.running if message.startswith("slow")]) == 17
        patients.open.set()
        own = engine.tenant(await engine.tenants.id_of("default"))
        for each in slow:
            await ended(own, each)

    assert len(patients.running) == 43


@pytest.fixture
async def quiet(words_only: Engine) -> Engine:
    """An engine in which an agent is defined, and nobody serves it."""
    await words_only.definitions.declare([Agent("support")])
    return words_only


async def test_users_have_turns_when_more_runs_wait_than_there_is_room_for(quiet: Engine) -> None:
    for number in range(10):
        await quiet.agents.send("support", f"eve {number}", user="eve", session_id=f"eve-{number}")
    for name in ("ann", "bob"):
        await quiet.agents.send("support", name, user=name, session_id=name)

    runs = quiet.agents.runs
    first = await runs.take(["support"], holder="me", lease=LEASE, most=4)
    second = await runs.take(["support"], holder="me", lease=LEASE, most=10, max_per_user=3)
    await quiet.agents.send("support", "ann again", user="ann", session_id="ann-2")
    third = await runs.take(["support"], holder="me", lease=LEASE, most=1)
    elsewhere = await runs.take(["support"], holder="another", lease=LEASE, most=10, max_per_user=3)

    assert sorted(run.user or "" for run in first) == ["ann", "bob", "eve", "eve"]
    assert [run.user for run in second] == ["eve"]  # who has three of three with this process
    assert [run.user for run in third] == ["ann"]
    assert [run.user for run in elsewhere] == ["eve"] * 3
