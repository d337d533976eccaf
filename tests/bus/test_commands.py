import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.app import App
from holdfast.bus import Completion, Record
from holdfast.core.config import Config, load_config
from holdfast.core.errors import AlreadyExists, CommandFailed, InvalidInput, NotFound, TimedOut, TooLarge, Unavailable
from holdfast.engine import Engine, open_engine

TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1"}
PATIENCE = 20


@pytest.fixture
def app() -> App:
    """A shop that can do a few things."""
    app = App()

    @app.skill("echo")
    async def echo(value: Any = None) -> Any:  # pyright: ignore[reportUnusedFunction]
        return value

    @app.skill("fail", attempts=1)
    async def fail() -> None:  # pyright: ignore[reportUnusedFunction]
        raise ValueError("no such word")

    @app.skill("huge", attempts=9)
    async def huge() -> str:  # pyright: ignore[reportUnusedFunction]
        return "x" * 1_000_000

    @app.skill("object", attempts=9)
    async def thing() -> object:  # pyright: ignore[reportUnusedFunction]
        return object()

    return app


@pytest.fixture
async def second(engine: Engine, config: Config) -> AsyncIterator[Engine]:
    """An engine of its own on the same database, as another process has it."""
    async with open_engine(config=config) as second:
        yield second


async def until(check: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE):
        while not await check():
            pass


async def on(engine: Engine, topic: str) -> list[Record]:
    """Everything on a topic."""
    return [record async for record in engine.log.read(topic)]


async def answered(engine: Engine, id: str, count: int = 1) -> list[Completion]:
    """Wait until so many answers to a command came."""

    async def enough() -> bool:
        return len(await engine.commands.completions(id)) >= count

    await until(enough)
    return await engine.commands.completions(id)


@pytest.mark.req("EDA-01", "EDA-02")
@pytest.mark.parametrize(
    "value", ["hi", 1, 2.5, None, True, [], {}, {"a": [None, {"b": ""}]}, "\0\ud83d", 10**20, -math.inf]
)
async def test_a_skill_gives_its_result_back(engine: Engine, app: App, value: Any) -> None:
    async with engine.worker(app):
        result = await engine.commands.invoke("echo", {"value": value}, timeout=PATIENCE)

    assert result == value
    assert type(result) is type(value)


@pytest.mark.req("EDA-01")
async def test_invocation_and_completion_are_on_their_topics_as_the_events_of_the_spec(
    engine: Engine, app: App
) -> None:
    async with engine.worker(app):
        await engine.commands.invoke("echo", {"value": 7}, correlation_id="c-1", headers=TRACE, timeout=PATIENCE)

    (asked,), (told,) = await on(engine, "agent-commands"), await on(engine, "agent-events")
    (completion,) = await engine.commands.completions("c-1")
    assert asked.value == {
        "correlationId": "c-1",
        "skillName": "echo",
        "arguments": {"value": 7},
        "replyTo": "agent-events",
    }
    assert told.value == {"correlationId": "c-1", "result": 7}
    assert (asked.key, told.key) == ("c-1", "c-1")
    assert asked.headers == {
        "content-type": "application/json",
        "holdfast-schema": "skill-invocation/1.0.0",
        "holdfast-command": "c-1",
        **TRACE,
    }
    assert told.headers == {
        "content-type": "application/json",
        "holdfast-schema": "skill-completion/1.0.0",
        "holdfast-completion": str(completion.id),
        **TRACE,
    }


@pytest.mark.req("EDA-01")
@pytest.mark.parametrize(("exists", "topic"), [(True, "replies"), (False, "agent-events")])
async def test_the_answer_goes_where_the_invoker_wants_it_if_there_is_such_a_topic(
    engine: Engine, app: App, exists: bool, topic: str
) -> None:
    if exists:
        await engine.log.create("replies")

    async with engine.worker(app):
        await engine.commands.invoke("echo", reply_to="replies", timeout=PATIENCE)

    assert len(await on(engine, topic)) == 1
    assert len(await on(engine, "agent-events")) == (not exists)


@pytest.mark.req("EDA-01", "BUS-02")
async def test_row_and_record_come_with_the_callers_transaction_or_not_at_all(engine: Engine) -> None:
    with suppress(ZeroDivisionError):
        async with engine.transaction() as tx:
            await engine.commands.submit("echo", correlation_id="lost", tx=tx)
            raise ZeroDivisionError
    async with engine.transaction() as tx:
        kept = await engine.commands.submit("echo", tx=tx)

    assert [record.key for record in await on(engine, "agent-commands")] == [kept]
    assert [command.correlation_id for command in await engine.commands.list()] == [kept]
    with pytest.raises(NotFound):
        await engine.commands.get("lost")


@pytest.mark.req("EDA-03")
async def test_a_command_that_is_submitted_twice_is_one(engine: Engine, app: App) -> None:
    first = await engine.commands.submit("echo", {"value": [1, 2.0]}, correlation_id="once")

    async with engine.worker(app):
        again = await asyncio.gather(
            *(
                engine.commands.invoke("echo", {"value": [1, 2.0]}, correlation_id="once", timeout=PATIENCE)
                for _ in range(5)
            )
        )
        later = await engine.commands.invoke("echo", {"value": [1, 2.0]}, correlation_id="once", timeout=PATIENCE)

    assert first == "once"
    assert [*again, later] == [[1, 2.0]] * 6
    assert len(await engine.commands.completions("once")) == 1
    assert len(await on(engine, "agent-commands")) == 1


@pytest.mark.req("EDA-03")
@pytest.mark.parametrize(("skill", "value"), [("echo", 2), ("fail", 1)])
async def test_a_correlation_id_of_another_command_is_refused(engine: Engine, skill: str, value: int) -> None:
    await engine.commands.submit("echo", {"value": 1}, correlation_id="once")

    with pytest.raises(AlreadyExists, match="once is already used"):
        await engine.commands.submit(skill, {"value": value}, correlation_id="once")
    async with engine.transaction() as tx:
        with pytest.raises(AlreadyExists, match="once is already used"):
            await engine.commands.submit(skill, {"value": value}, correlation_id="once", tx=tx)

    assert len(await engine.commands.list()) == 1


@pytest.mark.req("EDA-04", "ENG-07")
async def test_a_failure_reaches_the_invoker_with_the_workers_words(engine: Engine, app: App) -> None:
    async with engine.worker(app):
        with pytest.raises(CommandFailed, match="ValueError: no such word") as failure:
            await engine.commands.invoke("fail", correlation_id="c-1", timeout=PATIENCE)

    (told,) = await on(engine, "agent-events")
    error = {"code": "failed", "message": "ValueError: no such word"}
    assert failure.value.details == {"correlation_id": "c-1", "error": error}
    assert told.value == {"correlationId": "c-1", "error": error}
    assert (await engine.commands.get("c-1")).error == "ValueError: no such word"


@pytest.mark.req("EDA-04", "ENG-07")
@pytest.mark.parametrize(
    ("skill", "arguments", "code", "said"),
    [
        ("echo", {"valu": 1}, "invalid_input", "unexpected keyword argument 'valu'"),
        ("fail", {"value": 1}, "invalid_input", "the arguments do not match the skill fail"),
        ("object", {}, "invalid_input", "the value cannot be encoded as JSON"),
        ("huge", {}, "too_large", "the result is too large"),
    ],
)
async def test_what_cannot_succeed_fails_at_once_and_is_no_dead_letter(
    engine: Engine, app: App, skill: str, arguments: dict[str, Any], code: str, said: str
) -> None:
    async with engine.worker(app):
        with pytest.raises(CommandFailed, match=said) as failure:
            await engine.commands.invoke(skill, arguments, correlation_id="c-1", timeout=PATIENCE)

    command = await engine.commands.get("c-1")
    assert (command.state, command.attempts) == ("failed", 1)
    assert failure.value.details["error"]["code"] == code  # pyright: ignore[reportIndexIssue, reportUnknownVariableType]
    assert await engine.dead_letters.list() == []


@pytest.mark.req("EDA-02", "EDA-03")
async def test_a_command_without_a_worker_waits_and_is_done_when_one_comes(engine: Engine, app: App) -> None:
    with pytest.raises(TimedOut, match="It stays queued or running") as late:
        await engine.commands.invoke("echo", {"value": 1}, timeout=0.05)
    id = str(late.value.details["correlation_id"])

    waiting = asyncio.create_task(engine.commands.result(id, timeout=PATIENCE))
    async with engine.worker(app):
        result = await waiting

    assert result == 1
    assert (await engine.commands.get(id)).state == "done"


@pytest.mark.req("EDA-02")
async def test_an_invoker_that_restarts_finds_the_completion(engine: Engine, second: Engine, app: App) -> None:
    id = await engine.commands.submit("echo", {"value": "kept"})
    async with second.worker(app):
        await second.commands.result(id, timeout=PATIENCE)

    result = await engine.commands.result(id, timeout=PATIENCE)

    assert result == "kept"


@pytest.mark.req("EDA-02")
async def test_who_waits_while_the_engine_closes_is_told(engine: Engine, config: Config) -> None:
    async def submitted() -> bool:
        return bool(await engine.commands.list())

    async with open_engine(config=config) as closing:
        waiting = asyncio.create_task(closing.commands.invoke("nobody", timeout=PATIENCE))
        await until(submitted)

    with pytest.raises(Unavailable, match="get its result with a new engine"):
        await waiting


@pytest.mark.req("EDA-02")
async def test_many_wait_at_once_and_hold_no_connection(
    engine: Engine, second: Engine, app: App, config: Config
) -> None:
    small = load_config({"database.url": config.database.url, "database.pool_size": 2, "data": config.data}, environ={})

    async with open_engine(config=small) as invoker, invoker.transaction() as held:
        waiting = [asyncio.create_task(invoker.commands.invoke("echo", {"value": n}, timeout=60)) for n in range(200)]

        async def submitted() -> bool:
            return len(await engine.commands.list(limit=1000)) == 200

        await until(submitted)
        assert await invoker.database.value("select $1::uuid is not null"), "the one connection that is left is free"
        async with second.worker(app):
            results = await asyncio.gather(*waiting)
        await held.now()

    assert results == list(range(200))


@pytest.mark.req("EDA-01")
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"result": {"text": "bonjour"}}, None),
        ({"result": 1, "more": "than we know"}, None),
        ({"error": {"code": "no_word", "message": "no such word"}}, {"code": "no_word", "message": "no such word"}),
        ({"error": "no such word"}, {"code": "failed", "message": "no such word"}),
        ({"error": {"reason": 1}}, {"code": "failed", "message": "it failed without a message", "reason": 1}),
    ],
)
async def test_a_worker_that_knows_only_the_log_answers(
    engine: Engine, answer: dict[str, Any], error: dict[str, Any] | None
) -> None:
    id = await engine.commands.submit("translate", {"text": "hello"})
    waiting = asyncio.create_task(engine.commands.result(id, timeout=PATIENCE))
    (asked,) = await on(engine, "agent-commands")

    await engine.log.publish("agent-events", key=id, value={"correlationId": asked.value["correlationId"], **answer})

    if error is None:
        assert await waiting == answer["result"]
    else:
        with pytest.raises(CommandFailed) as failure:
            await waiting
        assert failure.value.details["error"] == error
    assert len(await on(engine, "agent-events")) == 1, "it is not published again"


@pytest.mark.req("EDA-03")
async def test_a_second_completion_is_kept_and_not_applied(engine: Engine, app: App) -> None:
    async with engine.worker(app):
        await engine.commands.invoke("echo", {"value": "first"}, correlation_id="c-1", timeout=PATIENCE)
        await engine.log.publish("agent-events", key="c-1", value={"correlationId": "c-1", "result": "second"})
        completions = await answered(engine, "c-1", 2)

    assert [(c.applied, c.result) for c in completions] == [(True, "first"), (False, "second")]
    assert await engine.commands.result("c-1") == "first"
    assert (await engine.commands.get("c-1")).state == "done"


@pytest.mark.req("EDA-01")
async def test_an_invoker_that_knows_only_the_log_is_served(engine: Engine, app: App) -> None:
    await engine.log.create("replies", partitions=1)
    asked = {"correlationId": "f-1", "skillName": "echo", "arguments": {"value": 7}, "replyTo": "replies", "more": 1}
    async with engine.worker(app), engine.log.subscribe(["replies"], group="invoker") as replies:
        await engine.log.publish("agent-commands", key="f-1", value=asked, headers=TRACE)

        async with asyncio.timeout(PATIENCE):
            reply = await anext(replies)

    assert reply.value == {"correlationId": "f-1", "result": 7}
    assert TRACE.items() <= reply.headers.items()
    assert len(await on(engine, "agent-commands")) == 1


@pytest.mark.req("EDA-01", "EDA-03")
async def test_an_answer_that_is_read_before_its_invocation_counts(engine: Engine, app: App) -> None:
    async with engine.worker(app):
        await engine.log.publish("agent-events", key="f-1", value={"correlationId": "f-1", "result": "by another"})
        (early,) = await answered(engine, "f-1")
        await engine.log.publish("agent-commands", key="f-1", value={"correlationId": "f-1", "skillName": "echo"})

        async def known() -> bool:
            return any(command.finished_at for command in await engine.commands.list())

        await until(known)

    assert not early.applied
    assert await engine.commands.result("f-1", timeout=PATIENCE) == "by another"
    assert len(await engine.commands.completions("f-1")) == 1


@pytest.mark.req("EDA-01", "BUS-04")
@pytest.mark.parametrize(
    ("topic", "value", "said"),
    [
        ("agent-commands", "hello", "is not a SkillInvocationEvent"),
        ("agent-commands", {"skillName": "echo"}, "missing required field `correlationId`"),
        ("agent-commands", {"correlationId": "", "skillName": "echo"}, "is not a valid correlation id"),
        ("agent-commands", {"correlationId": "x", "skillName": "echo", "arguments": [1]}, "arguments"),
        (
            "agent-commands",
            {"correlationId": "x", "skillName": "echo", "replyTo": "a.b"},
            "not a valid name for a topic",
        ),
        (
            "agent-commands",
            {"correlationId": "x", "skillName": "echo", "replyTo": "agent-commands"},
            "completions cannot be sent",
        ),
        ("agent-commands", {"correlationId": "taken", "skillName": "other"}, "taken is already used"),
        ("agent-events", None, "is not a SkillCompletionEvent"),
        ("agent-events", {"result": 1}, "missing required field `correlationId`"),
        ("agent-events", {"correlationId": 7}, "correlationId"),
    ],
)
async def test_what_is_no_event_is_a_dead_letter_at_once_and_the_topic_goes_on(
    engine: Engine, app: App, topic: str, value: Any, said: str
) -> None:
    await engine.commands.submit("nobody", correlation_id="taken")

    async with engine.worker(app):
        await engine.log.publish(topic, key="k", value=value)
        await engine.log.publish(
            "agent-commands", key="k", value={"correlationId": "next", "skillName": "echo", "arguments": {}}
        )
        await engine.log.publish("agent-events", key="k", value={"correlationId": "unknown", "result": 1})
        await answered(engine, "next")
        (late,) = await answered(engine, "unknown")

        async def buried() -> bool:
            return len(await engine.dead_letters.list()) == 1

        await until(buried)

    (letter,) = await engine.dead_letters.list()
    assert (letter.topic, letter.value) == (topic, value)
    assert said in letter.error
    assert not late.applied


@pytest.mark.req("EDA-04")
async def test_a_cancelled_command_is_never_done_and_its_invoker_is_told(engine: Engine, app: App) -> None:
    id = await engine.commands.submit("echo")
    waiting = asyncio.create_task(engine.commands.result(id, timeout=PATIENCE))

    cancelled = await engine.commands.cancel(id)

    with pytest.raises(CommandFailed, match="was cancelled") as failure:
        await waiting
    async with engine.worker(app):
        await engine.commands.invoke("echo", timeout=PATIENCE)
    (told, _) = sorted(await on(engine, "agent-events"), key=lambda record: record.at)
    assert (cancelled.state, (await engine.commands.cancel(id)).state) == ("cancelled", "cancelled")
    assert failure.value.details["correlation_id"] == id
    assert told.value["error"]["code"] == "cancelled"
    assert len(await engine.commands.completions(id)) == 1


@pytest.mark.req("EDA-04")
async def test_what_is_done_cannot_be_cancelled(engine: Engine, app: App) -> None:
    async with engine.worker(app):
        await engine.commands.invoke("echo", {"value": 1}, correlation_id="c-1", timeout=PATIENCE)

    command = await engine.commands.cancel("c-1")

    assert command.state == "done"
    assert await engine.commands.result("c-1") == 1


@pytest.mark.req("EDA-03")
async def test_commands_are_listed_the_newest_first_a_page_at_a_time(engine: Engine) -> None:
    ids = [await engine.commands.submit("echo" if n % 2 else "fail", {"n": n}) for n in range(5)]
    await engine.commands.cancel(ids[3])

    first = await engine.commands.list(limit=2)
    rest = await engine.commands.list(limit=10, before=first[-1].correlation_id)
    echoes = await engine.commands.list(skill="echo")
    cancelled = await engine.commands.list(state="cancelled")

    assert [command.correlation_id for command in [*first, *rest]] == ids[::-1]
    assert [command.correlation_id for command in echoes] == [ids[3], ids[1]]
    assert [command.correlation_id for command in cancelled] == [ids[3]]


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"skill": ""}, InvalidInput, "is not a valid skill's name"),
        ({"skill": 7}, InvalidInput, "7 is not a valid skill's name"),
        ({"arguments": [1]}, InvalidInput, "its arguments are a list, not an object"),
        ({"arguments": {"x": object()}}, InvalidInput, "cannot be encoded as JSON"),
        ({"arguments": {"x": "x" * 2_000_000}}, TooLarge, "the record is too large"),
        ({"correlation_id": ""}, InvalidInput, "is not a valid correlation id"),
        ({"correlation_id": "x" * 201}, InvalidInput, "is not a valid correlation id"),
        ({"reply_to": "another.tenant"}, InvalidInput, "is not a valid name for a topic"),
        ({"reply_to": "agent-commands"}, InvalidInput, "completions cannot be sent to agent-commands"),
        ({"priority": 2**31}, InvalidInput, "its priority is not an integer from -2147483647 to 2147483647"),
        ({"priority": "x"}, InvalidInput, "its priority"),
        ({"max_attempts": 0}, InvalidInput, "its max_attempts is not an integer from 1 to 2147483647"),
        ({"max_attempts": 3_000_000_000}, InvalidInput, "from 1 to 2147483647"),
        ({"max_attempts": 1.5}, InvalidInput, "its max_attempts"),
        ({"run_at": datetime(2030, 1, 1)}, InvalidInput, "no time zone"),  # noqa: DTZ001
        ({"run_at": datetime.max.replace(tzinfo=UTC)}, InvalidInput, "the year 9999 of its run_at is out of range"),
        ({"run_at": datetime.min.replace(tzinfo=UTC)}, InvalidInput, "the year 1 of its run_at"),
        ({"run_at": "tomorrow"}, InvalidInput, "its run_at is a str"),
        ({"delay": timedelta(-1)}, InvalidInput, "is negative"),
        ({"delay": timedelta.max}, InvalidInput, "longer than a hundred years"),
        ({"delay": 5}, InvalidInput, "its delay is a int, not a timedelta"),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": timedelta(1)}, InvalidInput, "both run_at and delay"),
        ({"headers": {"x": 1}}, InvalidInput, "headers of the record are invalid"),
        ({"headers": "x"}, InvalidInput, "its headers are a str"),
    ],
)
async def test_a_command_that_makes_no_sense_is_refused(
    engine: Engine, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    skill = given.pop("skill", "echo")

    refused, innocent = await asyncio.gather(
        engine.commands.submit(skill, **given), engine.commands.submit("echo"), return_exceptions=True
    )

    assert type(refused) is error
    assert said in str(refused)
    assert [command.correlation_id for command in await engine.commands.list()] == [innocent]


@pytest.mark.req("ENG-07")
@pytest.mark.parametrize("timeout", [math.nan, "5"])
async def test_a_time_to_wait_that_is_none_is_refused(engine: Engine, timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a valid timeout"):
        await engine.commands.invoke("echo", timeout=timeout)
    with pytest.raises(InvalidInput, match="is not a valid timeout"):
        await engine.commands.result("c-1", timeout=timeout)

    assert await engine.commands.list() == []


@pytest.mark.req("EDA-02")
async def test_who_waits_for_ever_is_answered(engine: Engine, app: App) -> None:
    async with engine.worker(app):
        assert await engine.commands.invoke("echo", {"value": 1}, timeout=math.inf) == 1


@pytest.mark.req("ENG-07")
async def test_an_id_that_is_no_text_is_refused(engine: Engine) -> None:
    wrong: Any = 5

    for asked in (
        engine.commands.get(wrong),
        engine.commands.result(wrong),
        engine.commands.cancel(wrong),
        engine.commands.completions(wrong),
        engine.commands.list(before=wrong),
    ):
        with pytest.raises(InvalidInput, match="5 is not a valid correlation id"):
            await asked


@pytest.mark.req("ENG-07")
async def test_a_page_before_a_command_that_is_not_there_is_told(engine: Engine) -> None:
    first = await engine.commands.submit("echo")

    with pytest.raises(NotFound, match=r"the command nope does not exist.*`holdfast commands ls`"):
        await engine.commands.list(before="nope")

    assert await engine.commands.list(before=first) == []


@pytest.mark.req("ENG-07")
async def test_an_unknown_command_is_told(engine: Engine) -> None:
    with pytest.raises(NotFound, match="the command nobody does not exist"):
        await engine.commands.get("nobody")
    with pytest.raises(NotFound, match="the command nobody does not exist"):
        await engine.commands.result("nobody", timeout=PATIENCE)
    with pytest.raises(NotFound, match="the command nobody does not exist"):
        await engine.commands.cancel("nobody")
    with pytest.raises(InvalidInput, match="not a state of a command"):
        await engine.commands.list(state="lost")  # pyright: ignore[reportArgumentType]

    assert await engine.commands.completions("nobody") == []


@pytest.mark.req("EDA-01", "SAFE-02")
async def test_tenants_do_not_see_one_anothers_commands(engine: Engine, app: App) -> None:
    await engine.tenants.create("acme")
    acme = engine.tenant("acme")
    await acme.commands.submit("echo", {"value": "acme's"}, correlation_id="same")
    await engine.commands.submit("echo", {"value": "ours"}, correlation_id="same")

    async with engine.worker(app):
        ours = await engine.commands.result("same", timeout=PATIENCE)

    assert ours == "ours"
    assert (await acme.commands.get("same")).state == "queued"
    assert await acme.commands.completions("same") == []
