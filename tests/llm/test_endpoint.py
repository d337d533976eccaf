import asyncio
import gzip
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress

import pytest

from holdfast.core.errors import ModelFailed
from holdfast.llm import Caller, providers
from tests.llm.asking import HELLO
from tests.llm.conftest import OpenCaller
from tests.llm.wires import Sent, Wire, error, recorded

pytestmark = pytest.mark.req("AGENT-03")

KEY = "sk-hunter2-and-more"


async def failure(caller: Caller) -> ModelFailed:
    """How asking fails; a key is in no part of it."""
    with pytest.raises(ModelFailed) as failed:
        await caller.ask(HELLO)
    said = f"{failed.value} {failed.value.details} {failed.value!r} {caller.state}"
    assert "hunter2" not in said
    assert failed.value.__suppress_context__
    return failed.value


@pytest.mark.parametrize(
    ("status", "body", "retryable", "said"),
    [
        (401, error(f"Incorrect API key provided: {KEY}."), False, "returned 401: Incorrect API key provided: ****"),
        (401, error("who are you"), False, "Check llm.api_key"),
        (403, error("no"), False, "Check llm.api_key"),
        (404, error("The model `any` does not exist"), False, "Check llm.model and llm.base_url"),
        (400, error("too big", code="context_length_exceeded"), False, "Lower llm.context_tokens"),
        (400, error("bad tool schema"), False, "returned 400: bad tool schema"),
        (429, error("slow down", code="rate_limit_exceeded"), True, "returned 429: slow down. Try again later"),
        (429, error("pay first", code="insufficient_quota"), False, "pay first"),
        (500, error("oops"), True, "returned 500: oops"),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', True, "Overloaded"),
        (503, b"", True, "it returned no message"),
        (502, b"\xff\xfe\x00", True, "returned 502"),
        (500, b"x" * 1_000_000, True, "returned 500: xxx"),
        (301, b"", False, "returned 301"),
    ],
)
async def test_a_refusal_says_what_why_and_what_next(
    wire: Wire, open_caller: OpenCaller, status: int, body: bytes, retryable: bool, said: str
) -> None:
    wire.will_send(Sent([body], status=status, kind="application/json"))
    caller = await open_caller(model="openai:any", base_url=wire.url, api_key=KEY, attempts=1)

    failed = await failure(caller)

    assert said in str(failed)
    assert failed.details == {"model": "openai:any", "status": status, "retryable": retryable}
    assert len(str(failed)) < 500
    assert caller.state == ("reduced", str(failed))


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("text/html; charset=utf-8", b"<html><h1>Welcome</h1>", "returned text/html, not an event stream"),
        ("application/json", b'{"object":"chat.completion"}', "returned application/json, not an event stream"),
        ("application/json", b'{"error":{"message":"no such model"}}', "returned an error: no such model"),
        ("text/event-stream", b"<html>", "broke off its answer: the stream ended without a finish_reason"),
        ("text/event-stream", b"", "broke off its answer"),
        ("text/event-stream", b"data: {oops\n\n", "sent an event that is not JSON"),
        ("text/event-stream", b"data: \xff\n\n", "sent an event that is not JSON"),
        ("text/event-stream", b"data: " + b"[" * 200_000 + b"\n\n", "sent an event that is not JSON"),
        ("text/event-stream", b"data: " + b"x" * 10_000_000, "an invalid answer: it has more than"),
    ],
)
async def test_what_is_no_stream_is_a_clear_failure(
    wire: Wire, open_caller: OpenCaller, kind: str, body: bytes, said: str
) -> None:
    wire.will_send(Sent([body], kind=kind))
    caller = await open_caller(model="openai:any", base_url=wire.url, api_key=KEY, attempts=1)

    failed = await failure(caller)

    assert said in str(failed)


async def test_a_page_behind_an_error_is_not_repeated(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(Sent([b"<html><body>lots</body>"], status=502, kind="text/html"))
    caller = await open_caller(model="openai:any", base_url=wire.url, attempts=1)

    failed = await failure(caller)

    assert "returned 502: an HTML page" in str(failed)
    assert "lots" not in str(failed)


async def test_an_answer_without_end_is_given_up(
    wire: Wire, open_caller: OpenCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.llm.endpoint.MAX_ANSWER_BYTES", 1_000_000)
    wire.will_send(Sent([b": nothing to say\n" * 1000] * 100))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    failed = await failure(caller)

    assert "sent an answer that is too large" in str(failed)
    assert not failed.retryable


async def test_a_compressed_stream_is_read(wire: Wire, open_caller: OpenCaller) -> None:
    body = gzip.compress(recorded("openai_text"))
    wire.will_send(Sent([body[:50], body[50:]], headers={"Content-Encoding": "gzip"}))
    caller = await open_caller(model="openai:any", base_url=wire.url)

    reply = await caller.ask(HELLO)

    assert reply.text == "Grüße aus 北京 👋"


@pytest.mark.parametrize(
    ("headers", "body"), [({"Content-Encoding": "gzip"}, b"no gzip"), ({"Content-Encoding": "br"}, b"\x00\x01")]
)
async def test_a_stream_that_cannot_be_decompressed_is_a_failure(
    wire: Wire, open_caller: OpenCaller, headers: Mapping[str, str], body: bytes
) -> None:
    wire.will_send(Sent([body], headers=headers))
    caller = await open_caller(model="openai:any", base_url=wire.url, attempts=1)

    await failure(caller)


async def test_a_connection_that_breaks_is_a_failure_that_may_pass(wire: Wire, open_caller: OpenCaller) -> None:
    wire.will_send(Sent([recorded("openai_text")[:700]], breaks=True))
    caller = await open_caller(model="openai:any", base_url=wire.url, api_key=KEY, attempts=1)

    failed = await failure(caller)

    assert "broke off its answer" in str(failed)
    assert failed.details == {"model": "openai:any", "status": None, "retryable": True}


@pytest.mark.parametrize("name", ["there-is-no-such-host.invalid", "127.0.0.1"])
async def test_a_server_that_is_not_there_is_said(open_caller: OpenCaller, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    caller = await open_caller(model="ollama:qwen3", base_url=f"http://{name}:{port}/v1", attempts=1)

    failed = await failure(caller)

    assert "the model ollama:qwen3 cannot be reached" in str(failed)
    assert "Check llm.base_url" in str(failed)
    assert failed.retryable


async def test_a_server_that_speaks_no_tls_is_said(open_caller: OpenCaller) -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Plain\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        caller = await open_caller(model="openai:any", base_url=f"https://127.0.0.1:{port}/v1", attempts=1)

        failed = await failure(caller)

    assert "the model openai:any cannot be reached" in str(failed)


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openrouter:x/y", "OPENROUTER_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
    ],
)
async def test_a_missing_key_is_said_when_the_model_is_asked(open_caller: OpenCaller, model: str, setting: str) -> None:
    caller = await open_caller(model=model)
    before = caller.state

    failed = await failure(caller)

    assert before[0] == "reduced"
    assert f"the model {model} has no API key; set {setting}" in before[1]
    assert str(failed).startswith(f"the model {model} was not called: it has no API key. Set {setting} or ")
    assert not failed.retryable


@pytest.mark.parametrize("key", ["sk\nhunter2", "sk hunter2", "sk-hunter2-\u00e9"])
async def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(
    wire: Wire, open_caller: OpenCaller, key: str
) -> None:
    wire.will_send(recorded("openai_text"))
    caller = await open_caller(model="openai:any", base_url=wire.url, api_key=key)

    failed = await failure(caller)

    assert "its API key contains invalid characters" in str(failed)
    assert wire.asked == []


async def test_no_provider_gets_the_key_of_another(
    wire: Wire, open_caller: OpenCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "ADDRESSES", dict.fromkeys(providers.ADDRESSES, wire.url))
    wire.will_send(recorded("openai_text"))
    models = ["openrouter:a", "anthropic:b", "openai:c", "ollama:d"]
    caller = await open_caller(
        model="openai:own", base_url=wire.url, openai_api_key="sk-openai", openrouter_api_key="sk-or",
        anthropic_api_key="sk-ant", attempts=1,
    )  # fmt: skip

    for model in models:
        with suppress(ModelFailed):  # the anthropic one is answered in another language
            await caller.ask(HELLO, model=model)

    keys = [(asked.headers.get("authorization"), asked.headers.get("x-api-key")) for asked in wire.asked]
    assert keys == [("Bearer sk-or", None), (None, "sk-ant"), (None, None), (None, None)]


async def test_no_log_has_a_key(wire: Wire, open_caller: OpenCaller, caplog: pytest.LogCaptureFixture) -> None:
    wire.will_send(Sent([error(f"bad key {KEY}")], status=500), Sent([recorded("openai_text")]))
    caller = await open_caller(model="openai:any", base_url=wire.url, api_key=KEY)

    with caplog.at_level(logging.DEBUG):
        await caller.ask(HELLO)

    assert "retrying" in caplog.text
    assert "hunter2" not in caplog.text + repr(vars(caller)["_settings"])
