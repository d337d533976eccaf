"""Agents whose log is on Kafka: the process that does a turn is killed, and the turn ends once."""

import asyncio
from pathlib import Path

import pytest

from holdfast.core.config import Config
from holdfast.engine import Engine
from tests.acceptance.clerks import (
    CONTEXTS,
    PATIENCE,
    TOPIC,
    WHERE,
    WHOLE,
    Clerks,
    drained,
    happened,
    survived,
)
from tests.conformance.drivers import QUICK
from tests.kafka.plain import Plain
from tests.processes import Processes
from tests.told import told

pytestmark = pytest.mark.acceptance


@pytest.fixture
def clerks(processes: Processes, tmp_path: Path, config: Config, no_models: None) -> Clerks:
    """Processes that serve."""
    assert config.database.url is not None
    bus = {"url": config.bus.url, "prefix": config.bus.prefix, "options": ",".join(QUICK), "lease": 1, "partitions": 4}
    settings: dict[str, object] = {
        "database.url": config.database.url.get_secret_value(),
        "data": config.data,
        "memory.embedding.fetch": False,
        **{f"bus.{name}": value for name, value in bus.items()},
    }
    return Clerks(processes, tmp_path, settings)


@pytest.mark.req("AGENT-01", "STM-06")
@pytest.mark.parametrize(("moment", "asked"), [("streaming", ["1", "2", "2"]), ("answered", ["1", "2"])])
async def test_killed_in_a_turn_it_ends_once_and_no_stored_reply_is_paid_for_again(
    clerks: Clerks, engine: Engine, moment: str, asked: list[str]
) -> None:
    await survived(engine, clerks, moment)

    assert (clerks.asked, clerks.used) == (asked, ["track"])


@pytest.mark.req("TALK-02", "TALK-03", "TALK-05")
async def test_a_plain_client_sees_the_flow_of_a_turn_in_records_without_content(
    clerks: Clerks, engine: Engine, plain: Plain
) -> None:
    await clerks.start()

    async with asyncio.timeout(PATIENCE):
        events = [event async for event in engine.agents.run("support", message=WHERE, user="ann", session_id="web-1")]
    seen = await plain.read(TOPIC, 4, partitions=4)

    await drained(engine)
    talk = await engine.conversations.find(session_id="web-1")
    assert talk is not None
    said = await engine.conversations.since(talk.id, 0)
    assert happened(events) == list(WHOLE[1:])
    assert [node.context for node in said] == CONTEXTS
    assert [each.brief for each in await told(engine, TOPIC)] == [
        (1, "create", "ui", said[0].id),
        (2, "tool_invoke", "support", said[1].id),
        (3, "tool_result", "tool", said[2].id),
        (4, "append", "support", said[3].id),
    ]
    assert [dict(record.headers)["holdfast-sequence"] for record in seen] == [b"1", b"2", b"3", b"4"]
    assert not any(node.content.encode() in (record.value or b"") for record in seen for node in said)
