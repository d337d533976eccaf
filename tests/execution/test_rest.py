"""The REST runner against real services: what it sends, what it tells, and what it never does."""

import asyncio
import base64
import gzip
import json
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email import message_from_bytes
from email.policy import HTTP
from typing import Any

import pytest
from aiohttp import web

from holdfast.core.errors import Forbidden, HoldfastError, LimitReached, TimedOut, TooLarge, Unavailable
from holdfast.execution.egress import AllowedHosts, Egress
from holdfast.execution.rest import HttpRunner
from holdfast.execution.rest.responses import to_result
from holdfast.execution.rest.runner import REST
from holdfast.execution.runner import Result
from holdfast.skills.request import AuthScheme, Backend, BodyField, RequestBody, RequestParameter
from holdfast.skills.tool import Tool
from tests.execution.backend import RUN, Keyring, Known, RawService, Service, raw_service, rest_tool

KEY = "s3cr/et+key-0123456789"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BEARER = ((AuthScheme("main", "bearer"),),)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A back end."""
    async with Service().serving() as service:
        yield service


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    """A way out that reaches the test's own back ends."""
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        yield egress


@pytest.fixture
def secrets() -> Keyring:
    """What back ends are shown."""
    return Keyring(key=KEY, login="ann:correct-horse", limited=Known(KEY, hosts=("api.example",)))


@pytest.fixture
def runner(egress: Egress, secrets: Keyring) -> HttpRunner:
    """A runner of small answers."""
    return HttpRunner(egress, secrets, max_response_bytes=100_000)


async def call(runner: HttpRunner, tool: Tool, arguments: dict[str, Any] | None = None, timeout: float = 5) -> Result:
    """What comes of a call."""
    return await runner.run(tool, arguments or {}, RUN, timeout=timeout)


async def failure(runner: HttpRunner, tool: Tool, timeout: float = 5) -> HoldfastError:
    """What a call fails by."""
    with pytest.raises(HoldfastError) as raised:
        await call(runner, tool, timeout=timeout)
    return raised.value


@pytest.mark.req("EXEC-01")
async def test_a_call_arrives_as_its_request_says(runner: HttpRunner, service: Service) -> None:
    tool = rest_tool(
        "POST",
        f"{service.url}/orders/{{id}}",
        parameters=(
            RequestParameter("id", "id", "path", "simple"),
            RequestParameter("dry", "dry", "query"),
            RequestParameter("trace", "X-Trace", "header"),
            RequestParameter("theme", "theme", "cookie"),
        ),
        body=RequestBody("application/json", fields=(BodyField("note", "note"),)),
    )

    result = await call(runner, tool, {"id": "a/b ü", "dry": True, "trace": "é", "theme": "dark", "note": "hi"})

    said = result.value
    assert (said["method"], said["path"]) == ("POST", "/orders/a%2Fb%20%C3%BC?dry=true")
    assert said["headers"]["x-trace"] == "é"
    assert said["headers"]["cookie"] == "theme=dark"
    assert said["headers"]["content-type"] == "application/json"
    assert said["headers"]["accept-encoding"] == "gzip, deflate"
    assert json.loads(said["body"]) == {"note": "hi"}
    assert not result.failed


@pytest.mark.req("EXEC-01")
async def test_a_multipart_body_is_one_that_servers_read(runner: HttpRunner, service: Service) -> None:
    fields = (BodyField("title", "title"), BodyField("file", "file", content_type="image/png"))
    tool = rest_tool("POST", f"{service.url}/upload", body=RequestBody("multipart/form-data", fields=fields))

    await call(runner, tool, {"title": "ü", "file": base64.b64encode(b"\x89PNG\0\r\n").decode()})

    [asked] = service.asked
    head = f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode()
    title, file = message_from_bytes(head + asked.body, policy=HTTP).iter_parts()
    assert title.get_param("name", header="content-disposition") == "title"
    assert title.get_payload(decode=True) == "ü".encode()
    assert (file.get_filename(), file.get_content_type()) == ("file", "image/png")
    assert file.get_payload(decode=True) == b"\x89PNG\0\r\n"


async def test_a_large_body_is_sent_whole(runner: HttpRunner, service: Service) -> None:
    tool = rest_tool("POST", f"{service.url}/big", body=RequestBody("text/plain", argument="text"))
    service.will_answer("/big", text="ok")

    await call(runner, tool, {"text": "x" * 1_900_000})

    assert len(service.asked[0].body) == 1_900_000


@pytest.mark.req("EXEC-02")
async def test_a_refusal_is_a_failed_result_that_a_model_can_act_on(runner: HttpRunner, service: Service) -> None:
    service.will_answer(
        "/", status=429, text='{"detail": "slow down"}', content_type="application/json", headers={"Retry-After": "7"}
    )

    result = await call(runner, rest_tool("GET", service.url))

    assert result.failed
    assert result.value == {
        "status": 429,
        "error": "Too Many Requests. The back end limits the rate of calls: wait before the next call.",
        "retry_after": "7 seconds",
        "body": {"detail": "slow down"},
    }


async def test_a_packed_answer_is_unpacked(runner: HttpRunner, service: Service) -> None:
    service.will_answer(
        "/", body=gzip.compress(b'{"a": 1}'), content_type="application/json", headers={"Content-Encoding": "gzip"}
    )

    assert (await call(runner, rest_tool("GET", service.url))).value == {"a": 1}


@pytest.mark.req("EXEC-02")
async def test_a_huge_answer_is_left_unread_and_the_next_call_is_served(runner: HttpRunner, service: Service) -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(65536))

    service.will_answer("/huge", huge)
    service.will_answer(
        "/bomb", body=gzip.compress(bytes(50_000_000)), headers={"Content-Encoding": "gzip"}, status=201
    )  # fmt: skip

    endless = await failure(runner, rest_tool("GET", f"{service.url}/huge"))
    bomb = await failure(runner, rest_tool("POST", f"{service.url}/bomb"))
    after = await call(runner, rest_tool("GET", service.url))

    assert isinstance(endless, TooLarge)
    assert str(endless).startswith("127.0.0.1 returned 200, but the response has more than 100,000 bytes")
    assert str(bomb).startswith("127.0.0.1 returned 201, but")
    assert "may have taken effect" in str(bomb)
    assert after.value["path"] == "/"


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        ([HEAD + b"Content-Length: 100\r\n\r\n", b'{"a":'], "broke off its response"),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n", b"{"], "broke off its response"),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"], "127.0.0.1"),
        ([HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"], "is not valid gzip"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "is not valid HTTP"),
        ([HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n"], "is not valid HTTP"),
        ([b""], "closed the connection without a response"),
        ([HEAD], "closed the connection without a response"),
    ],
)
async def test_what_breaks_off_or_is_no_http_is_told_as_such(
    runner: HttpRunner, pieces: list[bytes], says: str
) -> None:
    async with raw_service(*pieces) as broken:
        error = await failure(runner, rest_tool("GET", broken.url))

    assert isinstance(error, Unavailable)
    assert says in str(error)


@pytest.mark.req("EXEC-02")
@pytest.mark.parametrize("trickle", [b"1\r\n \r\n", b""])
async def test_an_answer_that_never_ends_ends_with_the_time(runner: HttpRunner, trickle: bytes) -> None:
    async with raw_service(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", trickle=trickle, hang=True) as slow:
        error = await failure(runner, rest_tool("GET", slow.url), timeout=0.3)
        async with asyncio.timeout(5):
            await slow.left.wait()

    assert isinstance(error, TimedOut)
    assert str(error) == "127.0.0.1 did not respond within 0.3 seconds. Try again."


@pytest.mark.req("EXEC-05")
async def test_what_is_not_idempotent_and_times_out_may_have_taken_effect(runner: HttpRunner) -> None:
    async with raw_service(hang=True) as slow:
        error = await failure(runner, rest_tool("POST", slow.url), timeout=0.3)

    assert "may have taken effect" in str(error)


async def test_the_back_end_has_a_time_of_its_own(runner: HttpRunner) -> None:
    async with raw_service(hang=True) as slow:
        tool = rest_tool("GET", slow.url, backend=Backend(timeout=0.2))
        error = await failure(runner, tool, timeout=60)

    assert "in 0.2 seconds" in str(error)


@pytest.mark.req("EXEC-02")
async def test_a_cancelled_call_hangs_up(runner: HttpRunner) -> None:
    async with raw_service(hang=True) as slow:
        task = asyncio.create_task(call(runner, rest_tool("GET", slow.url)))
        async with asyncio.timeout(5):
            await slow.arrived.wait()
            task.cancel()
            await slow.left.wait()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.req("EXEC-02")
async def test_who_cannot_be_reached_was_sent_nothing(runner: HttpRunner) -> None:
    async with raw_service() as gone:
        url = gone.url

    nobody = await failure(runner, rest_tool("POST", url))
    nowhere = await failure(runner, rest_tool("POST", "http://no-such-host.invalid/"))

    assert "cannot be reached" in str(nobody)
    assert str(nobody).endswith("Nothing was sent.")
    assert str(nowhere).startswith("the host no-such-host.invalid does not exist")


async def stale(runner: HttpRunner, method: str, *, idempotent: bool) -> tuple[RawService, HoldfastError | Result]:
    """A second call on a connection that its back end closes when it comes."""
    async with raw_service(HEAD + b"Content-Length: 2\r\n\r\n{}") as service:
        service.last = b""
        await call(runner, rest_tool("GET", service.url))
        try:
            return service, await call(runner, rest_tool(method, service.url, idempotent=idempotent))
        except HoldfastError as error:
            return service, error


@pytest.mark.req("EXEC-05")
@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE", "GET"])
async def test_what_is_not_idempotent_is_never_sent_twice(runner: HttpRunner, method: str) -> None:
    service, error = await stale(runner, method, idempotent=False)

    assert service.requests == 2
    assert isinstance(error, Unavailable)
    assert "may have taken effect" in str(error)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_is_idempotent_is_sent_again_where_a_kept_connection_was_closed(
    runner: HttpRunner, method: str
) -> None:
    service, result = await stale(runner, method, idempotent=True)

    assert service.requests == 3
    assert isinstance(result, Result)


async def test_a_fresh_connection_that_fails_is_not_tried_again(runner: HttpRunner) -> None:
    async with raw_service(b"") as service:
        await failure(runner, rest_tool("GET", service.url))

    assert service.requests == 1


async def test_calls_share_their_connections(runner: HttpRunner) -> None:
    ok = HEAD + b"Content-Length: 2\r\n\r\n{}"
    async with raw_service(ok) as service:
        service.last = ok
        await call(runner, rest_tool("POST", service.url))
        await call(runner, rest_tool("POST", service.url))

    assert service.requests == 2
    assert service.connections == 1


@pytest.mark.req("EXEC-04")
async def test_a_secret_goes_to_the_back_end_and_comes_back_from_nowhere(
    runner: HttpRunner, service: Service, secrets: Keyring
) -> None:
    tool = rest_tool(
        "GET",
        f"{service.url}/echo",
        security=((AuthScheme("main", "bearer"), AuthScheme("other", "query", "k")),),
        headers={"X-Login": "{{secret:login}}"},
        backend=Backend(auth={"main": "key", "other": "key"}),
    )

    result = await call(runner, tool)

    assert service.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert service.asked[0].headers["X-Login"] == "ann:correct-horse"
    assert result.value["headers"]["authorization"] == "Bearer [secret]"
    assert result.value["path"] == "/echo?k=[secret]"
    assert result.value["headers"]["x-login"] == "[secret]"
    assert secrets.asked == [{"key", "login"}]


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("kind", ["bearer", "basic", "header", "query", "cookie"])
async def test_no_error_and_no_log_says_a_secret(
    egress: Egress, service: Service, caplog: pytest.LogCaptureFixture, kind: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "ann:" + KEY.replace("/", "_")
    runner = HttpRunner(egress, Keyring(key=secret))
    said = f"bad key {secret}: {base64.b64encode(secret.encode()).decode()}"
    service.will_answer("/no", status=403, text=said, headers={"X-Said": secret})
    service.will_answer("/away", status=302, headers={"Location": f"ftp://x.example/{secret}"})
    backend = Backend(auth={"main": "key"})
    security = ((AuthScheme("main", kind, "Key"),),)

    refused = await call(runner, rest_tool("GET", f"{service.url}/no", security=security, backend=backend))
    errors = [
        str(await failure(runner, rest_tool("GET", url, security=security, backend=backend)))
        for url in (f"{service.url}/away", "http://127.0.0.1:1/", "http://10.0.0.1/", "http://x.invalid/")
    ]

    told = "\n".join([str(refused), *errors, caplog.text])
    assert "bad key [secret]: [secret]" in told
    for form in (secret, KEY.replace("/", "_"), base64.b64encode(secret.encode()).decode()):
        assert form not in told


@pytest.mark.req("EXEC-04")
async def test_a_secret_of_other_hosts_is_not_shown(runner: HttpRunner, service: Service) -> None:
    tool = rest_tool("GET", service.url, security=BEARER, backend=Backend(auth={"main": "limited"}))

    error = await failure(runner, tool)

    assert isinstance(error, Forbidden)
    assert "the secret limited may not be sent to this host" in str(error)
    assert service.asked == []


@pytest.mark.req("EXEC-04")
async def test_a_secret_that_is_not_there_is_named(runner: HttpRunner, service: Service) -> None:
    tool = rest_tool("GET", service.url, security=BEARER, backend=Backend(auth={"main": "gone"}))

    assert "`holdfast secrets set gone`" in str(await failure(runner, tool))
    assert service.asked == []


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_within_an_origin_keeps_who_calls(runner: HttpRunner, service: Service, status: int) -> None:
    service.will_answer("/old", status=status, headers={"Location": "/new?a=%2F#part"})
    tool = rest_tool("GET", f"{service.url}/old", security=BEARER, backend=Backend(auth={"main": "key"}))

    result = await call(runner, tool)

    assert result.value["path"] == "/new?a=%2F"
    assert service.asked[1].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_origin_leaves_who_calls_behind(
    runner: HttpRunner, service: Service, status: int
) -> None:
    async with Service().serving() as other:
        service.will_answer("/", status=status, headers={"Location": f"{other.url}/there"})
        tool = rest_tool(
            "GET",
            service.url,
            parameters=(RequestParameter("t", "X-Tenant", "header"), RequestParameter("c", "session", "cookie")),
            security=BEARER,
            headers={"X-Key": "{{secret:key}}"},
            backend=Backend(auth={"main": "key"}),
        )

        result = await call(runner, tool, {"t": "acme", "c": "1"})

        assert result.value["path"] == "/there"
        assert set(other.asked[0].headers) == {"Host", "Accept", "Accept-Encoding", "User-Agent"}


@pytest.mark.req("EXEC-05")
async def test_what_changes_something_is_sent_on_with_its_body_within_its_origin_alone(
    runner: HttpRunner, service: Service
) -> None:
    async with Service().serving() as other:
        service.will_answer("/moved", status=308, headers={"Location": "/here"})
        service.will_answer("/out", status=307, headers={"Location": f"{other.url}/there"})
        service.will_answer("/found", status=302, headers={"Location": "/here"})
        service.will_answer("/done", status=303, headers={"Location": "/orders/7"})

        moved, out, found, done = [
            await call(runner, rest_tool("POST", service.url + path), {"a": 1})
            for path in ("/moved", "/out", "/found", "/done")
        ]

        assert (moved.value["method"], moved.value["path"], moved.value["body"]) == ("POST", "/here", '{"a":1}')
        assert (out.failed, out.value["status"], out.value["location"]) == (True, 307, f"{other.url}/there")
        assert (found.failed, found.value["status"]) == (True, 302)
        assert "may have taken effect" in found.value["note"]
        assert (done.failed, done.value["location"]) == (False, "/orders/7")
        assert other.asked == []
        assert len(service.asked) == 5


async def test_redirects_without_end_end(runner: HttpRunner, service: Service) -> None:
    service.will_answer("/round", status=302, headers={"Location": "/round"})

    error = await failure(runner, rest_tool("GET", f"{service.url}/round"))

    assert isinstance(error, LimitReached)
    assert len(service.asked) == 6


async def test_a_redirect_to_nowhere_is_told(runner: HttpRunner, service: Service) -> None:
    for number, location in enumerate(["http://[::1", "file:///etc/passwd", "http://u:p@127.0.0.1/"]):
        service.will_answer(f"/{number}", status=302, headers={"Location": location})
        assert "to a URL that cannot be called" in str(
            await failure(runner, rest_tool("GET", f"{service.url}/{number}"))
        )


@pytest.mark.req("EXEC-02")
async def test_many_calls_at_once_are_all_served(runner: HttpRunner, service: Service) -> None:
    tool = rest_tool("GET", f"{service.url}/{{n}}")

    results = await asyncio.gather(*(call(runner, tool, {"n": number}) for number in range(200)))

    assert [result.value["path"] for result in results] == [f"/{number}" for number in range(200)]


@asynccontextmanager
async def echoing(before: bytes) -> AsyncGenerator[str]:
    """The address of a service that answers with what it was sent, behind so many bytes, which is no HTTP."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(before + await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("status", [b"", b"HTTP/1.1 200 ", b"HTTP/1.1 200 OK\r\nA: b\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_no_part_of_a_secret_is_in_an_error_wherever_that_is_cut(egress: Egress, status: bytes) -> None:
    key = "zyxwvutsrqponmlkjihgfedcba987654"
    runner = HttpRunner(egress, Keyring(key=key))
    security, backend = ((AuthScheme("main", "query", "k"),),), Backend(auth={"main": "key"})
    told = ""

    for length in (*range(0, 320, 8), 8150, 8180, 9000):
        async with echoing(status + b"x" * length) as url:
            try:
                told += str(await call(runner, rest_tool("GET", url, security=security, backend=backend)))
            except HoldfastError as error:
                told += str(error)

    assert all(key[start : start + 6] not in told for start in range(len(key) - 5))


@pytest.mark.req("EXEC-04")
async def test_a_secret_is_struck_out_of_the_type_of_an_answer_and_of_where_it_is(
    egress: Egress, service: Service
) -> None:
    service.will_answer("/type", body=b"\0\1\xff", headers={"Content-Type": f"application/{KEY.replace('/', '_')}"})
    service.will_answer("/long", status=302, headers={"Location": "/" + "x" * 1985 + KEY})
    service.will_answer("/wait", status=503, headers={"Retry-After": "x" * 50 + KEY})
    runner = HttpRunner(egress, Keyring(key=KEY, safe=KEY.replace("/", "_")))

    kind, where, wait = [
        str(
            await call(
                runner, rest_tool("POST", service.url + path, security=BEARER, backend=Backend(auth={"main": name}))
            )
        )
        for path, name in (("/type", "safe"), ("/long", "key"), ("/wait", "key"))
    ]

    assert "application/[secret]" in kind
    assert KEY[:8] not in where + wait
    assert KEY.replace("/", "_")[:8] not in kind


@pytest.mark.req("EXEC-04")
async def test_a_secret_that_ends_with_a_line_is_struck_out(egress: Egress, service: Service) -> None:
    tool = rest_tool("GET", service.url, security=BEARER, backend=Backend(auth={"main": "key"}))

    result = await call(HttpRunner(egress, Keyring(key=f"{KEY}\n")), tool)

    assert service.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert result.value["headers"]["authorization"] == "Bearer [secret]"


@pytest.mark.req("EXEC-04")
async def test_an_error_that_nobody_expects_is_told_by_its_kind_alone(
    egress: Egress, secrets: Keyring, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> Result:
        raise LookupError(f"no {KEY}")

    runner = HttpRunner(egress, secrets, dialect=replace(REST, read=fail))

    error = await failure(
        runner, rest_tool("POST", service.url, security=BEARER, backend=Backend(auth={"main": "key"}))
    )

    assert str(error).startswith("the call of call_it failed: with a LookupError. It may have taken effect")
    assert KEY not in caplog.text
    assert "in fail" in caplog.text


@pytest.mark.req("EXEC-02")
async def test_a_large_answer_is_read_beside_the_loop(egress: Egress, service: Service) -> None:
    read_by: list[bool] = []

    def note(*given: Any, **options: Any) -> Result:
        read_by.append(threading.current_thread() is threading.main_thread())
        return to_result(*given, **options)

    service.will_answer("/large", text=json.dumps(["x"] * 100_000), content_type="application/json")
    runner = HttpRunner(egress, Keyring(), dialect=replace(REST, read=note))

    await call(runner, rest_tool("GET", service.url))
    result = await call(runner, rest_tool("GET", f"{service.url}/large"))

    assert result.value == ["x"] * 100_000
    assert read_by == [True, False]
