"""What is not public is not reached: whichever way it is written, resolved or redirected to."""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from holdfast.core.errors import BadSetting, Forbidden, InvalidInput, LimitReached, Unavailable
from holdfast.execution.egress import AllowedHosts, Egress, checked_url, is_private
from holdfast.execution.rest import HttpRunner
from holdfast.skills.request import AuthScheme, Backend
from tests.execution.backend import RUN, Keyring, Known, Service, raw_service, rest_tool

PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::f7f7:f7f7",
    "2001:0:808:808::80ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1",
    "2002:a9fe:a9fe::", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
    "fec0::1", "ff02::1", "2606:4700::1%1",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1",
    "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:4860::8888",
    "2001:0:808:808::f7f7:f7f7",
]  # fmt: skip

NOT_CALLED = (Forbidden, InvalidInput)  # where nobody listens, anything else would be a call that was tried

# Each is the test's own machine, or nothing that may be called; %s is the port.
FORMS = [
    "127.0.0.1:%s", "127.0.0.2:%s", "127.1:%s", "127.0.1:%s", "2130706433:%s", "017700000001:%s", "0x7f000001:%s",
    "0x7F.0.0.1:%s", "0x7f.1:%s", "0177.0.0.1:%s", "0177.0.0.01:%s", "127.0.0.1.:%s", "127.000.000.001:%s",
    "0:%s", "0.0.0.0:%s", "00000000:%s", "0x0:%s", "4294967295:%s", "0x100000000:%s", "127.0.0.0x1:%s",
    "localhost:%s", "LOCALHOST:%s", "localhost.:%s", "LocalHost..:%s", "①②⑦.⓪.⓪.①:%s", "\uff11\uff12\uff17.0.0.1:%s",
    "127。0。0。1:%s", "127\uff0e0\uff0e0\uff0e1:%s", "127｡0｡0｡1:%s", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:%s", "loc\u00adalhost:%s",
    "[::1]:%s", "[0:0:0:0:0:0:0:1]:%s", "[0000:0000:0000:0000:0000:0000:0000:0001]:%s", "[::]:%s", "[::127.0.0.1]:%s",
    "[::ffff:127.0.0.1]:%s", "[::FFFF:7F00:1]:%s", "[0:0:0:0:0:ffff:7f00:0001]:%s", "[::ffff:0:127.0.0.1]:%s",
    "[64:ff9b::7f00:1]:%s", "[64:ff9b::127.0.0.1]:%s", "[2002:7f00:1::1]:%s", "[2001:0:7f00:1::]:%s",
    "[fe80::1]:%s", "[fe80::1%%25lo]:%s", "[::1%%25lo]:%s", "[fec0::1]:%s", "[fd00:ec2::254]:%s", "[ff02::1]:%s",
    "169.254.169.254:%s", "2852039166:%s", "0xa9fea9fe:%s", "100.100.100.200:%s", "192.168.0.1:%s", "10.0.0.1:%s",
    "private.test:%s", "six.test:%s", "mapped.test:%s", "mixed.test:%s", "metadata.test:%s", "sub.localhost:%s",
    "user:password@127.0.0.1:%s", "127.0.0.1:%s#@public.test", "public.test@127.0.0.1:%s",
    "127.0.0.1%%2f@public.test:%s", "127.0.0.1%%00.public.test:%s",
]  # fmt: skip

NAMES: Mapping[str, Sequence[str]] = {
    "private.test": ["127.0.0.1"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "mixed.test": ["127.0.0.1", "::1", "10.0.0.1"],
    "metadata.test": ["169.254.169.254"],
}


class Names(AbstractResolver):
    """Resolves what a test says, else as the machine does, and what that does not know to the machine itself."""

    def __init__(self, names: Mapping[str, Sequence[str]] = NAMES) -> None:
        self.names = dict(names)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = self.names.get(host)
        if found is None:
            try:
                found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
            except (OSError, ValueError):
                found = ["127.0.0.1"]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0) for address in found
        ]

    async def close(self) -> None:
        pass


@pytest.fixture
async def target() -> AsyncIterator[Service]:
    """A service on this machine, which counts who reaches it."""
    async with Service().serving() as service:
        yield service


def runner(egress: Egress) -> HttpRunner:
    """A runner without secrets."""
    return HttpRunner(egress, Keyring())


async def call(egress: Egress, url: str, method: str = "GET") -> Any:
    """What comes of a call."""
    return await runner(egress).run(rest_tool(method, url), {}, RUN, timeout=5)


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_globally_routable_is_private(address: str) -> None:
    assert is_private(address)


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_globally_routable_is_not(address: str) -> None:
    assert not is_private(address)


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("form", FORMS)
async def test_no_form_of_a_private_address_is_reached(target: Service, form: str) -> None:
    async with Egress(resolver=Names()) as egress:
        with pytest.raises(NOT_CALLED):
            await call(egress, f"http://{form % target.port}/")

    assert target.asked == []


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("form", FORMS)
async def test_no_redirect_leads_to_a_private_address(target: Service, form: str) -> None:
    async with Service().serving() as public:
        public.will_answer("/go", status=302, headers={"Location": f"http://{form % target.port}/"})
        allowed = AllowedHosts.parse([f"public.test:{public.port}"])
        names = Names({**NAMES, "public.test": ["127.0.0.1"]})

        async with Egress(allowed, resolver=names) as egress:
            with pytest.raises(NOT_CALLED):
                await call(egress, f"http://public.test:{public.port}/go")

    assert len(public.asked) == 1
    assert target.asked == []


def test_there_are_sixty_forms() -> None:
    assert len(FORMS) >= 60


@pytest.mark.parametrize("form", ["127.0.0.1:%s", "①②⑦.⓪.⓪.①:%s", "[::1]:%s", "[::ffff:127.0.0.1]:%s", "mixed.test:%s"])
async def test_the_same_forms_reach_what_is_allowed(target: Service, form: str) -> None:
    allowed = AllowedHosts.parse(["127.0.0.0/8", "::1"])

    async with Egress(allowed, resolver=Names()) as egress:
        result = await call(egress, f"http://{form % target.port}/")

    assert result.value["path"] == "/"


@pytest.mark.req("EXEC-04")
async def test_a_name_that_resolves_otherwise_the_next_time_is_judged_anew(
    target: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.execution.egress.NAME_SECONDS", 0)
    names = Names({"rebinding.test": ["127.0.0.1"]})
    target.will_answer("/", headers={"Connection": "close"})

    async with Egress(AllowedHosts.parse(["127.0.0.1"]), resolver=names) as egress:
        await call(egress, f"http://rebinding.test:{target.port}/")
        names.names["rebinding.test"] = ["127.0.0.2"]
        with pytest.raises(Forbidden, match=r"its address 127\.0\.0\.2 is not public"):
            await call(egress, f"http://rebinding.test:{target.port}/")

    assert len(target.asked) == 1


@pytest.mark.req("EXEC-04")
async def test_a_public_name_with_a_private_address_among_others_does_not_reach_that(target: Service) -> None:
    names = Names({"two.test": ["127.0.0.2", "127.0.0.1"]})

    async with Egress(AllowedHosts.parse(["127.0.0.1"]), resolver=names) as egress:
        await call(egress, f"http://two.test:{target.port}/")

    assert len(target.asked) == 1


@pytest.mark.req("EXEC-04")
async def test_what_is_allowed_by_name_is_so_under_that_name_and_port_alone(target: Service) -> None:
    names = Names({"wiki.test": ["127.0.0.1", "::1"], "other.test": ["127.0.0.1", "::1"]})
    allowed = AllowedHosts.parse([f"Wiki.Test:{target.port}"])

    async with Egress(allowed, resolver=names) as egress:
        await call(egress, f"http://wiki.test:{target.port}/")
        await call(egress, f"http://WIKI.TEST:{target.port}/")
        for url in (f"http://other.test:{target.port}/", f"http://127.0.0.1:{target.port}/", "http://wiki.test:9/"):
            with pytest.raises(Forbidden):
                await call(egress, url)

    assert len(target.asked) == 2


async def test_a_refusal_says_how_to_allow_it(target: Service) -> None:
    async with Egress(resolver=Names()) as egress:
        with pytest.raises(Forbidden) as raised:
            await call(egress, f"http://private.test:{target.port}/")

    assert str(raised.value) == (
        "private.test was not called: its address 127.0.0.1 is not public. "
        "Ask an operator to allow it in execution.allow_private."
    )


@pytest.mark.parametrize(
    ("entry", "host", "address", "port", "allowed"),
    [
        ("wiki.lan", "wiki.lan", "10.0.0.1", 80, True),
        ("wiki.lan", "WIKI.lan.", "10.0.0.1", 8080, True),
        ("wiki.lan", "x.wiki.lan", "10.0.0.1", 80, False),
        ("wiki.lan:80", "wiki.lan", "10.0.0.1", 81, False),
        ("10.0.0.1", "any", "10.0.0.1", 80, True),
        ("10.0.0.1", "any", "::ffff:10.0.0.1", 80, True),
        ("10.0.0.1", "any", "64:ff9b::a00:1", 80, False),
        ("10.0.0.1:443", "any", "10.0.0.1", 80, False),
        ("10.0.0.0/8", "any", "10.9.9.9", 80, True),
        ("10.0.0.0/8:443", "any", "10.9.9.9", 443, True),
        ("10.0.0.0/8", "any", "11.0.0.1", 80, False),
        ("::1", "any", "::1", 80, True),
        ("[::1]:80", "any", "::1", 81, False),
        ("fd00::/8", "any", "fd12::1", 80, True),
        ("[fd00::/8]:443", "any", "fd12::1", 443, True),
        ("fd00::/8", "any", "10.0.0.1", 80, False),
        ("fd00:1::2:443/128", "any", "fd00:1::2:443", 80, True),
        ("[fd00::1:443]", "any", "fd00::1:443", 80, True),
        ("::ffff:10.0.0.0/104", "any", "10.9.9.9", 80, True),
        ("::ffff:10.0.0.0/104", "any", "::ffff:10.9.9.9", 80, True),
        ("bücher.lan", "xn--bcher-kva.lan", "10.0.0.1", 80, True),
        ("xn--bcher-kva.lan", "xn--bcher-kva.lan", "10.0.0.1", 80, True),
        ("wiki.lan", "wiki.lan", "169.254.169.254", 80, False),
        ("wiki.lan", "wiki.lan", "::ffff:169.254.169.254", 80, False),
        ("wiki.lan", "wiki.lan", "fd00:ec2::254", 80, False),
        ("169.254.169.254", "wiki.lan", "169.254.169.254", 80, True),
    ],
)
def test_entries_allow_what_they_say(entry: str, host: str, address: str, port: int, allowed: bool) -> None:
    assert AllowedHosts.parse([entry]).permits(host, ipaddress.ip_address(address), port) is allowed


@pytest.mark.parametrize(
    "entry",
    ["", " ", "a b", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.1:0", "10.0.0.1:70000", "http://x", "x/y", "[::1", "u@h",
     "256.1.1.1", "127.1", "0x7f000001", "*", "*.lan", "wiki.lan:http", "::zz", "-a",
     "fd00::1:443", "::1:80"],
)  # fmt: skip
def test_an_entry_that_means_nothing_is_refused_by_name(entry: str) -> None:
    with pytest.raises(BadSetting, match=r"execution\.allow_private"):
        AllowedHosts.parse([entry])


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"])
async def test_no_proxy_of_the_environment_is_asked(
    target: Service, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    async with Service().serving() as proxy:
        monkeypatch.setenv(variable, proxy.url)

        async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
            await call(egress, target.url)

        assert (len(target.asked), len(proxy.asked)) == (1, 0)


@pytest.mark.req("EXEC-04")
async def test_no_cookie_of_an_answer_is_kept(target: Service) -> None:
    async def give(_: web.Request) -> web.Response:
        response = web.Response()
        response.set_cookie("session", "of somebody else")
        return response

    target.will_answer("/login", give)
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        await call(egress, f"{target.url}/login")
        result = await call(egress, target.url)

    assert "cookie" not in result.value["headers"]


@pytest.mark.parametrize(
    "url", ["ftp://x.example/", "ws://x.example/", "http://u@x.example/", "http://", "//x", "http://a:b"]
)
def test_only_plain_http_addresses_are_called(url: str) -> None:
    with pytest.raises(InvalidInput):
        checked_url(url)


@pytest.mark.req("EXEC-05")
async def test_a_request_that_reached_one_of_two_addresses_is_in_doubt() -> None:
    names = Names({"two.test": ["127.0.0.2", "127.0.0.1"]})

    async with raw_service(b"") as service, Egress(AllowedHosts.parse(["127.0.0.1"]), resolver=names) as egress:
        with pytest.raises(Unavailable, match="may have taken effect"):
            await call(egress, f"http://two.test:{service.port}/pay", "POST")

        assert service.requests == 1


@pytest.mark.req("EXEC-02")
async def test_who_waits_for_a_connection_is_told_so(target: Service) -> None:
    async with raw_service(hang=True) as slow, Egress(AllowedHosts.parse(["127.0.0.1"]), connections=1) as egress:
        other = asyncio.create_task(runner(egress).run(rest_tool("GET", slow.url), {}, RUN, timeout=30))
        async with asyncio.timeout(5):
            await slow.arrived.wait()

        with pytest.raises(LimitReached, match=r"all connections were in use for 0\.2 seconds.*Nothing was sent"):
            await runner(egress).run(rest_tool("POST", target.url), {}, RUN, timeout=0.2)

        other.cancel()
        await asyncio.wait([other])
        await call(egress, target.url)

    assert len(target.asked) == 1


@pytest.mark.req("EXEC-02")
async def test_a_name_server_that_hangs_holds_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def hang(*_: object) -> list[Any]:
        answers.wait(30)
        return []

    monkeypatch.setattr("holdfast.execution.resolver.SECONDS", 0.1)
    monkeypatch.setattr("socket.getaddrinfo", hang)
    try:
        async with asyncio.timeout(10), Egress() as egress:
            calls = [call(egress, f"http://{number}.test/") for number in range(50)]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            beside = await asyncio.to_thread(lambda: "is served")
    finally:
        answers.set()

    assert all("does not exist" in str(error) for error in errors)
    assert beside == "is served"


@pytest.mark.req("EXEC-04")
async def test_a_name_of_another_script_is_allowed_and_shown_secrets_by_the_letters_that_dns_has(
    target: Service,
) -> None:
    names = Names({"xn--bcher-kva.test": ["127.0.0.1"]})
    secrets = Keyring(key=Known("s3cret-key", hosts=("xn--bcher-kva.test",)))
    tool = rest_tool(
        "GET",
        f"http://bücher.test:{target.port}/",
        security=((AuthScheme("main", "bearer"),),),
        backend=Backend(auth={"main": "key"}),
    )

    async with Egress(AllowedHosts.parse(["bücher.test"]), resolver=names) as egress:
        await HttpRunner(egress, secrets).run(tool, {}, RUN, timeout=5)

    assert target.asked[0].headers["Authorization"] == "Bearer s3cret-key"


async def test_what_is_closed_opens_nothing(target: Service) -> None:
    async with Egress(AllowedHosts.parse(["127.0.0.1"])) as egress:
        pass

    with pytest.raises(Unavailable, match="the engine is closed"):
        await call(egress, target.url)
    assert target.asked == []
