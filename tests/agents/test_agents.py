"""Talking to agents: what is said again under the same key is said once, wherever it was said."""

import asyncio

import pytest

from holdfast import App
from tests.agents.stage import Player, Stage, answer, ended, nodes, reached, told


@pytest.mark.req("CONV-06", "AGENT-04")
async def test_the_same_key_gives_the_same_fork_and_run_however_often(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.hold()
    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")

    sent = [
        await engine.agents.send("support", "Two.", user="ann", session_id="web-1", key="k", busy="fork")
        for _ in range(2)
    ]
    model.release()
    await reached(engine, first.run_id, "done")
    again = await engine.agents.send("support", "Two.", user="ann", session_id="web-1", key="k", busy="fork")

    assert sent[0].conversation != first.conversation
    assert {(each.conversation, each.run_id) for each in [*sent, again]} == {(sent[0].conversation, sent[0].run_id)}
    assert answer(await ended(engine, again)) == "Done."
    assert [node.content for node in await nodes(engine, first.conversation)] == ["One.", "Done."]


@pytest.mark.req("CONV-06", "AGENT-04")
async def test_the_same_key_at_once_makes_one_fork(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    model.hold()
    first = await engine.agents.send("support", "One.", user="ann", session_id="web-1")

    sent = await asyncio.gather(*[
        engine.agents.send("support", "Two.", user="ann", session_id="web-1", key="k", busy="fork") for _ in range(5)
    ])  # fmt: skip
    other = await engine.agents.send("support", "Three.", user="ann", session_id="web-1", key="l", busy="fork")
    model.release()

    assert len({(each.conversation, each.run_id) for each in sent}) == 1
    assert len({first.conversation, sent[0].conversation, other.conversation}) == 3


@pytest.mark.req("CONV-06", "AGENT-04")
async def test_what_was_said_without_a_fork_is_found_where_it_was_said(stage: Stage, app: App, model: Player) -> None:
    engine = await stage.serve(app)
    await told(engine, "support", "One.", user="ann", session_id="web-1", key="k", busy="fork")
    model.hold()
    busy = await engine.agents.send("support", "Two.", user="ann", session_id="web-1")

    again = await engine.agents.send("support", "One.", user="ann", session_id="web-1", key="k", busy="fork")
    model.release()

    assert again.conversation == busy.conversation
    assert not again.is_new
