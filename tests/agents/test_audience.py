"""Everyone who watches in one process: they share what is read, cost each other nothing, and leave nothing behind."""

import asyncio

import pytest

from holdfast import App
from holdfast.agents import Event, broadcast
from holdfast.postgres.database import Row
from tests.agents.stage import PATIENCE, Player, Stage, kinds, of, told, until


def ends(event: Event) -> bool:
    """Whether a run has ended."""
    return event.kind in ("done", "error")


@pytest.mark.req("TALK-08")
async def test_when_nobody_watches_any_more_nobody_looks(
    stage: Stage, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "LINGER", 0.01)
    engine, other = await stage.serve(app), await stage.open()  # who serves the agent reads its topic anyway
    talk = await engine.agents.session("support", user="ann", session_id="web-1")

    for _ in range(2):  # and it begins anew
        others = asyncio.all_tasks()
        async with other.agents.watch(talk.id, "support") as events:
            looking = [task for task in asyncio.all_tasks() - others if "watching" in task.get_name()]
            await told(engine, "support", "Hello!", user="ann", session_id="web-1")
            seen = await until(events, ends)
        done, _ = await asyncio.wait(looking, timeout=PATIENCE)

        assert kinds(seen)[-1] == "done"
        assert len(looking) == 2
        assert done == set(looking)


@pytest.mark.req("WS-02", "TALK-08")
async def test_one_who_does_not_read_costs_those_who_do_nothing(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = await stage.serve(app), await stage.open()
    model.says({"text": "one two three four five six", "chunks": 9, "delay": 0.2})
    asked: list[int] = []
    read = other.database.all

    async def noted(statement: str, *arguments: object) -> list[Row]:
        if "turn_delta" in statement:
            asked.extend(arguments[1])  # pyright: ignore[reportArgumentType]
        return await read(statement, *arguments)

    monkeypatch.setattr(other.database, "all", noted)
    talk = await other.agents.session("support", user="ann", session_id="web-1")
    async with other.agents.watch(talk.id, "support") as idle, other.agents.watch(talk.id, "support") as events:
        await engine.agents.send("support", "Count!", user="ann", session_id="web-1")
        await until(events, ends)

        assert idle.queue_cursor.n == 0
    assert max(asked) > 0


@pytest.mark.req("TALK-08")
async def test_who_begins_to_watch_another_agent_has_nobody_else_read_again(stage: Stage, app: App) -> None:
    app.agent("billing")
    engine = await stage.serve(app)
    await told(engine, "support", "Hello!", user="ann", session_id="web-1")
    talk = await engine.agents.session("support", user="ann", session_id="web-1")
    async with engine.agents.watch(talk.id, "support") as first:
        await until(first, ends)
        await first.next_now()
        bill = await engine.agents.session("billing", user="ann", session_id="web-2")

        async with engine.agents.watch(bill.id, "billing") as second:
            assert await second.next_now() is None

            assert not first.is_behind


@pytest.mark.req("TALK-08", "ENG-04")
async def test_a_tenant_that_is_reached_by_name_and_by_id_is_one_audience(
    stage: Stage, app: App, model: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "POLL", 3600.0)  # nothing comes by the rows
    engine = await stage.serve(app)
    by_id = engine.tenant(await engine.database.tenant())
    by_name = engine.tenant((await engine.tenants.get(await engine.database.tenant())).name)
    model.says({"text": "one two three", "chunks": 3})
    talk = await by_name.agents.session("support", user="ann", session_id="web-1")

    async with by_id.agents.watch(talk.id, "support") as events:
        assert await events.next_now() is None
        await by_name.agents.send("support", "Count!", user="ann", session_id="web-1")
        seen = await until(events, ends)

    assert "".join(event.text for event in of(seen, "token")) == "one two three"
