"""Programs that know Kafka and nothing of us: as workers of our commands, and as those who ask for ours to be done."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.app import App
from holdfast.bus.topics import COMMANDS, EVENTS
from holdfast.core.errors import CommandFailed
from holdfast.engine import Engine
from tests.conformance.consumers import PATIENCE, until
from tests.kafka.plain import Plain, Seen

ONE_PARTITION = pytest.mark.parametrize("bus", [{"partitions": 1}], ids=["one partition"])
pytestmark = ONE_PARTITION

app = App()


@app.skill("shout")
async def shout(text: str) -> str:
    return text.upper()


async def work(
    plain: Plain, answer: Callable[[dict[str, Any]], dict[str, Any]], *, tenant: str = "", copy_headers: bool = False
) -> dict[str, Any]:
    """Be a worker for one command, as a program in any language is; what it was asked."""
    (seen,) = await plain.read(f"{tenant}{COMMANDS}", 1)
    asked = _json(seen)
    headers = seen.headers if copy_headers else []
    reply = {"correlationId": asked["correlationId"], **answer(asked)}
    await plain.produce(f"{tenant}{asked['replyTo']}", json.dumps(reply).encode(), headers=headers)
    return asked


def translated(asked: dict[str, Any]) -> dict[str, Any]:
    """What the worker makes of it."""
    return {"result": {"hello": "hallo"}[asked["arguments"]["text"]]}


def _json(seen: Seen) -> dict[str, Any]:
    assert seen.value is not None
    return json.loads(seen.value)


@pytest.mark.req("EDA-01", "EDA-02")
async def test_a_plain_client_is_a_worker(engine: Engine, plain: Plain) -> None:
    async with asyncio.timeout(PATIENCE):
        invoking = asyncio.create_task(engine.commands.invoke("translate", {"text": "hello"}, correlation_id="c-1"))
        asked = await work(plain, translated)

        assert await invoking == "hallo"
    assert asked == {
        "correlationId": "c-1",
        "skillName": "translate",
        "arguments": {"text": "hello"},
        "replyTo": EVENTS,
    }
    assert (await engine.commands.get("c-1")).state == "done"


@pytest.mark.req("EDA-01")
async def test_a_worker_that_copies_the_headers_of_what_it_read_is_heard(engine: Engine, plain: Plain) -> None:
    async with asyncio.timeout(PATIENCE):
        invoking = asyncio.create_task(engine.commands.invoke("translate", {"text": "hello"}))
        await work(plain, translated, copy_headers=True)

        assert await invoking == "hallo"


@pytest.mark.req("EDA-01")
async def test_a_plain_worker_answers_on_the_topic_that_it_was_told(engine: Engine, plain: Plain) -> None:
    await engine.log.create("answers", partitions=1)

    async with asyncio.timeout(PATIENCE):
        invoking = asyncio.create_task(engine.commands.invoke("translate", {"text": "hello"}, reply_to="answers"))
        asked = await work(plain, translated)

        assert await invoking == "hallo"
    assert asked["replyTo"] == "answers"


@pytest.mark.req("EDA-01")
async def test_what_a_plain_worker_could_not_do_is_told(engine: Engine, plain: Plain) -> None:
    async with asyncio.timeout(PATIENCE):
        invoking = asyncio.create_task(engine.commands.invoke("translate", {"text": "hello"}))
        await work(plain, lambda _: {"error": {"code": "tired", "message": "not today"}})

        with pytest.raises(CommandFailed, match="not today"):
            await invoking


@pytest.mark.req("EDA-03")
async def test_only_the_first_answer_of_plain_workers_counts(engine: Engine, plain: Plain) -> None:
    async with asyncio.timeout(PATIENCE):
        invoking = asyncio.create_task(
            engine.commands.invoke("translate", {"text": "hello"}, correlation_id="c-1", timeout=PATIENCE)
        )
        await work(plain, translated)
        assert await invoking == "hallo"
        await work(plain, lambda _: {"result": "moin"})

        async def both() -> bool:
            return len(await engine.commands.completions("c-1")) == 2

        await until(both)

    kept = await engine.commands.completions("c-1")
    assert [(one.result, one.applied) for one in kept] == [("hallo", True), ("moin", False)]
    assert await engine.commands.result("c-1") == "hallo"


@pytest.mark.req("EDA-01")
@pytest.mark.parametrize("reply_to", [EVENTS, "answers"])
async def test_a_plain_client_has_a_skill_of_ours_done(engine: Engine, plain: Plain, reply_to: str) -> None:
    await engine.log.create("answers", partitions=1)
    async with asyncio.timeout(PATIENCE), engine.worker(app):
        event = {"correlationId": "c-1", "skillName": "shout", "arguments": {"text": "hi"}, "replyTo": reply_to}
        await until(lambda: _has(plain, COMMANDS))
        await plain.produce(COMMANDS, json.dumps(event).encode(), key=b"c-1")

        (seen,) = await plain.read(reply_to, 1)

    answer = _json(seen)
    assert (answer["correlationId"], answer["result"], answer.get("error")) == ("c-1", "HI", None)


@pytest.mark.req("EDA-01", "EDA-04")
async def test_what_a_plain_client_asks_for_and_nobody_can_read_is_a_dead_letter(engine: Engine, plain: Plain) -> None:
    async with asyncio.timeout(PATIENCE), engine.worker(app):
        await until(lambda: _has(plain, COMMANDS))
        await plain.produce(COMMANDS, b'{"skillName": "shout"}')
        await plain.produce(COMMANDS, b"shout!")
        good = {"correlationId": "c-1", "skillName": "shout", "arguments": {"text": "hi"}}
        await plain.produce(COMMANDS, json.dumps(good).encode())

        (seen,) = await plain.read(EVENTS, 1)

    letters = await engine.dead_letters.list(topic=COMMANDS)
    assert _json(seen)["result"] == "HI", "what comes after it is done"
    assert {letter.error.partition(":")[0] for letter in letters} >= {"the value is not JSON"}
    assert sorted(str(letter.value) for letter in letters) == ["shout!", "{'skillName': 'shout'}"]


@pytest.mark.req("EDA-01", "ENG-04")
async def test_the_topics_of_another_tenant_are_led_by_its_name(engine: Engine, acme: Engine, plain: Plain) -> None:
    async with asyncio.timeout(PATIENCE):
        ours = asyncio.create_task(engine.commands.invoke("translate", {"text": "hello"}, correlation_id="c-1"))
        theirs = asyncio.create_task(acme.commands.invoke("translate", {"text": "hello"}, correlation_id="c-1"))
        await work(plain, lambda _: {"result": "theirs"}, tenant="acme.")
        assert await theirs == "theirs"
        assert not ours.done()

        await work(plain, lambda _: {"result": "ours"})
        assert await ours == "ours"
    assert {plain.name("acme." + COMMANDS), plain.name("acme." + EVENTS)} <= set(await plain.topics())


async def _has(plain: Plain, topic: str) -> bool:
    return plain.name(topic) in await plain.topics()
