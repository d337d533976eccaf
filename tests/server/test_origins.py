import pytest
from starlette.datastructures import Headers

from holdfast.core.errors import Forbidden, InvalidInput
from holdfast.server.host_origin import HostOriginPolicy, is_local, scheme_of
from holdfast.server.port import ServerAddress

LOOPBACK = ServerAddress("127.0.0.1", 4600)
EVERYWHERE = ServerAddress("0.0.0.0", 4600)


def headers(**given: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in given.items()})


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("address", "host"),
    [
        (LOOPBACK, "localhost"),
        (LOOPBACK, "LOCALHOST:4600"),
        (LOOPBACK, "localhost."),
        (LOOPBACK, "127.0.0.1:9"),
        (LOOPBACK, "127.9.9.9"),
        (LOOPBACK, "[::1]:4600"),
        (LOOPBACK, "holdfast.example"),
        (LOOPBACK, "holdfast.example:8443"),
        (LOOPBACK, "other.example:81"),
        (ServerAddress("10.0.0.5", 80), "10.0.0.5"),
        (EVERYWHERE, "192.168.1.7:4600"),
        (EVERYWHERE, "[fe80::1]:4600"),
    ],
)
def test_the_names_of_the_server_are_accepted(address: ServerAddress, host: str) -> None:
    doors = HostOriginPolicy(address, hosts=["Holdfast.example", "other.example:81"])

    doors.check_host(headers(host=host))


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("address", "host"),
    [
        (LOOPBACK, "evil.example"),
        (LOOPBACK, "evil.example:4600"),
        (LOOPBACK, "localhost.evil.example"),
        (LOOPBACK, "127.0.0.1.evil.example"),
        (LOOPBACK, "evil.localhost"),
        (LOOPBACK, "192.168.1.7"),
        (LOOPBACK, "other.example:82"),
        (LOOPBACK, "other.example"),
        (LOOPBACK, "0.0.0.0"),
        (EVERYWHERE, "evil.example"),
    ],
)
def test_any_other_name_is_refused(address: ServerAddress, host: str) -> None:
    doors = HostOriginPolicy(address, hosts=["holdfast.example", "other.example:81"])

    with pytest.raises(Forbidden, match="allowed_hosts"):
        doors.check_host(headers(host=host))


@pytest.mark.parametrize("host", ["", "localhost:", "localhost:x", "a b", "user@localhost", "localhost/x", "[::1", "é"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput):
        HostOriginPolicy(LOOPBACK).check_host(headers(host=host))


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("POST", headers(host="127.0.0.1:4600", origin="http://127.0.0.1:4600")),
        ("POST", headers(host="localhost", origin="http://localhost:80")),
        ("POST", headers(host="holdfast.example", origin="https://holdfast.example", x_forwarded_proto="https")),
        ("DELETE", headers(host="localhost", origin="https://app.example")),
        ("POST", headers(host="localhost")),
        ("POST", headers(host="localhost", sec_fetch_site="same-origin")),
        ("GET", headers(host="localhost", sec_fetch_site="cross-site")),
    ],
)
def test_pages_of_the_server_and_of_allowed_sites_may_call(method: str, given: Headers) -> None:
    doors = HostOriginPolicy(LOOPBACK, origins=["https://App.example/"])

    doors.check_origin(method, "http", given)


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://127.0.0.1:4601",
        "https://127.0.0.1:4600",
        "http://localhost:4600",
        "http://127.0.0.1:4600.evil.example",
        "http://127.0.0.1:4600@evil.example",
        "https://app.example.evil.example",
        "http://app.example",
        "file://",
        "\ud83d",
    ],
)
def test_pages_of_other_sites_may_not_call(method: str, origin: str) -> None:
    doors = HostOriginPolicy(LOOPBACK, origins=["https://app.example"])
    given = Headers(raw=[(b"host", b"127.0.0.1:4600"), (b"origin", origin.encode(errors="surrogatepass"))])

    with pytest.raises(Forbidden, match="allowed_origins"):
        doors.check_origin(method, "http", given)


def test_a_write_from_another_site_is_refused_even_where_the_browser_hides_the_origin() -> None:
    with pytest.raises(Forbidden):
        HostOriginPolicy(LOOPBACK).check_origin("POST", "http", headers(host="localhost", sec_fetch_site="cross-site"))


def test_two_hosts_are_refused() -> None:
    given = Headers(raw=[(b"host", b"localhost"), (b"host", b"localhost")])

    with pytest.raises(InvalidInput):
        HostOriginPolicy(LOOPBACK).check_host(given)


def test_two_origins_are_refused() -> None:
    given = Headers(raw=[(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://localhost")])

    with pytest.raises(Forbidden):
        HostOriginPolicy(LOOPBACK).check_origin("POST", "http", given)


@pytest.mark.req("SAFE-03")
@pytest.mark.parametrize(
    ("client", "given"),
    [
        ("10.0.0.9", headers(host="localhost")),
        ("127.0.0.1", headers(host="holdfast.example")),
        ("127.0.0.1", headers(host="localhost", forwarded="for=10.0.0.9")),
        ("127.0.0.1", headers(host="localhost", x_forwarded_for="127.0.0.1")),
        ("127.0.0.1", headers(host="localhost", x_forwarded_proto="https")),
        ("127.0.0.1", headers(host="localhost", x_real_ip="127.0.0.1")),
        ("127.0.0.1", headers(host="localhost", via="1.1 proxy")),
    ],
)
def test_a_call_from_elsewhere_or_through_a_proxy_is_not_local(client: str, given: Headers) -> None:
    assert not is_local(client, given)


@pytest.mark.parametrize("client", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_a_call_from_this_machine_is_local(client: str) -> None:
    assert is_local(client, headers(host="localhost:4600"))


@pytest.mark.parametrize(
    ("said", "scheme"), [("https", "https"), ("http, https", "https"), ("gopher", "http"), ("", "http")]
)
def test_a_proxy_says_how_the_browser_came(said: str, scheme: str) -> None:
    assert scheme_of("http", headers(x_forwarded_proto=said)) == scheme
