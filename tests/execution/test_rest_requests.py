"""What is sent for a call: each way in which OpenAPI writes arguments, and what no argument can do."""

import base64
import json
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import HoldfastError, InvalidInput, Unavailable
from holdfast.execution.rest.redirects import redirected_request
from holdfast.execution.rest.requests import WireRequest, secret_names, wire_request
from holdfast.skills.request import AuthScheme, Backend, BodyField, RequestBody, RequestParameter
from tests.execution.backend import rest_tool

LIST = ["blue", "black", "brown"]
COLORS = {"R": 100, "G": 200, "B": 150}


def sent(method: str, url: str, arguments: dict[str, Any], **request: Any) -> WireRequest:
    """What is sent."""
    return wire_request(rest_tool(method, url, **request), arguments, {})


@pytest.mark.req("EXEC-01")
@pytest.mark.parametrize(
    ("style", "explode", "value", "path"),
    [
        ("simple", False, "blue", "/blue"),
        ("simple", False, LIST, "/blue,black,brown"),
        ("simple", False, COLORS, "/R,100,G,200,B,150"),
        ("simple", True, COLORS, "/R=100,G=200,B=150"),
        ("label", False, "blue", "/.blue"),
        ("label", False, LIST, "/.blue,black,brown"),
        ("label", True, LIST, "/.blue.black.brown"),
        ("label", False, COLORS, "/.R,100,G,200,B,150"),
        ("label", True, COLORS, "/.R=100.G=200.B=150"),
        ("matrix", False, "blue", "/;color=blue"),
        ("matrix", False, LIST, "/;color=blue,black,brown"),
        ("matrix", True, LIST, "/;color=blue;color=black;color=brown"),
        ("matrix", False, COLORS, "/;color=R,100,G,200,B,150"),
        ("matrix", True, COLORS, "/;R=100;G=200;B=150"),
        ("simple", False, "a/b c?d#e%f", "/a%2Fb%20c%3Fd%23e%25f"),
        ("simple", False, "Zürich", "/Z%C3%BCrich"),
        ("simple", False, 7, "/7"),
        ("simple", False, 1.5, "/1.5"),
        ("simple", False, True, "/true"),
    ],
)
def test_a_path_is_written_in_every_style(style: Any, explode: bool, value: Any, path: str) -> None:
    parameters = (RequestParameter("shade", "color", "path", style, explode),)

    request = sent("GET", "https://x.example/{color}", {"shade": value}, parameters=parameters)

    assert request.url == f"https://x.example{path}"


@pytest.mark.req("EXEC-01")
@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", False, "", "color="),
        ("form", True, "blue", "color=blue"),
        ("form", True, LIST, "color=blue&color=black&color=brown"),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", True, COLORS, "R=100&G=200&B=150"),
        ("form", False, COLORS, "color=R,100,G,200,B,150"),
        ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("tabDelimited", False, LIST, "color=blue%09black%09brown"),
        ("pipeDelimited", True, LIST, "color=blue&color=black&color=brown"),
        ("deepObject", True, COLORS, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("deepObject", True, {"a": {"b": 1}}, "color%5Ba%5D%5Bb%5D=1"),
        ("deepObject", True, {"c": [1, 2]}, "color%5Bc%5D%5B%5D=1&color%5Bc%5D%5B%5D=2"),
        ("deepObject", True, {"i": [{"p": 1}]}, "color%5Bi%5D%5B0%5D%5Bp%5D=1"),
        ("form", True, "a&b=c#d +é", "color=a%26b%3Dc%23d%20%2B%C3%A9"),
        ("form", False, ["a,b", "c"], "color=a%2Cb,c"),
        ("form", True, [], ""),
        ("form", False, [], ""),
        ("form", True, None, ""),
        ("form", True, [1, None, 2], "color=1&color=2"),
    ],
)  # fmt: skip
def test_a_query_is_written_in_every_style(style: Any, explode: bool, value: Any, query: str) -> None:
    parameters = (RequestParameter("shade", "color", "query", style, explode),)

    request = sent("GET", "https://x.example/c", {"shade": value}, parameters=parameters)

    assert request.url.partition("?")[2] == query


def test_reserved_characters_stay_where_they_may_and_end_nothing() -> None:
    parameters = (RequestParameter("q", "q", "query", allow_reserved=True),)

    request = sent("GET", "https://x.example/", {"q": "a/b:c?d&e=f#g+h"}, parameters=parameters)

    assert request.url == "https://x.example/?q=a/b:c?d%26e=f%23g%2Bh"


@pytest.mark.req("EXEC-01")
def test_headers_and_cookies_are_written() -> None:
    parameters = (
        RequestParameter("list", "X-List", "header", "simple"),
        RequestParameter("object", "X-Object", "header", "simple", explode=True),
        RequestParameter("json", "X-Json", "header", content_type="application/json"),
        RequestParameter("theme", "theme", "cookie", "form", explode=True),
        RequestParameter("size", "size", "cookie"),
        RequestParameter("gone", "gone", "cookie"),
    )
    arguments = {"list": LIST, "object": COLORS, "json": {"a": [1]}, "theme": "a;b", "size": [1, 2]}

    request = sent("GET", "https://x.example/", arguments, parameters=parameters)

    assert request.headers["X-List"] == "blue,black,brown"
    assert request.headers["X-Object"] == "R=100,G=200,B=150"
    assert request.headers["X-Json"] == '{"a":[1]}'
    assert request.headers["Cookie"] == "theme=a%3Bb; size=1,2"


def test_a_parameter_with_a_type_of_content_is_written_as_that() -> None:
    parameters = (
        RequestParameter("filter", "filter", "query", content_type="application/json"),
        RequestParameter("key", "key", "path", content_type="application/json"),
    )

    request = sent("GET", "https://x.example/{key}", {"filter": {"a": None}, "key": ["b"]}, parameters=parameters)

    assert unquote(request.url) == 'https://x.example/["b"]?filter={"a":null}'


@pytest.mark.req("EXEC-01")
def test_a_json_body_is_made_of_fields_or_of_one_argument() -> None:
    fields = RequestBody(
        "application/json", fields=(BodyField("id_body", "id"), BodyField("name", "name"), BodyField("gone", "gone"))
    )
    whole = RequestBody("application/merge-patch+json", argument="body")

    made = sent("POST", "https://x.example/", {"id_body": 1, "name": None}, body=fields)
    given_whole = sent("PATCH", "https://x.example/", {"body": [1, {"a": "é"}]}, body=whole)

    assert json.loads(made.body or b"") == {"id": 1, "name": None}
    assert made.headers["Content-Type"] == "application/json"
    assert given_whole.body == '[1,{"a":"é"}]'.encode()
    assert given_whole.headers["Content-Type"] == "application/merge-patch+json"


def test_a_body_of_which_nothing_is_given_is_empty_where_one_is_usual_and_left_out_elsewhere() -> None:
    body = RequestBody("application/json", fields=(BodyField("a", "a"),))

    assert sent("POST", "https://x.example/", {}, body=body).body == b"{}"
    assert sent("DELETE", "https://x.example/", {}, body=body).body is None
    assert "Content-Type" not in sent("DELETE", "https://x.example/", {}, body=body).headers
    assert sent("POST", "https://x.example/", {}, body=RequestBody("application/json", argument="body")).body is None


@pytest.mark.req("EXEC-01")
def test_a_form_is_written_with_the_styles_of_its_fields() -> None:
    fields = (
        BodyField("name", "name"),
        BodyField("tags", "tags"),
        BodyField("address", "address"),
        BodyField("meta", "meta", style="deepObject", explode=True),
        BodyField("ids", "ids", style="form", explode=False),
    )
    arguments = {
        "name": "a b&c", "tags": ["x", "y"], "address": {"city": "Köln"}, "meta": {"k": {"l": 1}}, "ids": [1, 2],
    }  # fmt: skip

    request = sent(
        "POST", "https://x.example/", arguments, body=RequestBody("application/x-www-form-urlencoded", fields=fields)
    )

    assert parse_qsl((request.body or b"").decode()) == [
        ("name", "a b&c"), ("tags", "x"), ("tags", "y"), ("address", '{"city":"Köln"}'), ("meta[k][l]", "1"),
        ("ids", "1,2"),
    ]  # fmt: skip


@pytest.mark.req("EXEC-01")
def test_a_multipart_body_has_a_part_for_each_field() -> None:
    fields = (
        BodyField("title", "title"),
        BodyField("meta", "meta"),
        BodyField("picture", 'pic"ture', content_type="image/png, image/jpeg"),
        BodyField("files", "files", content_type="application/octet-stream"),
        BodyField("note", "note", content_type="text/markdown"),
    )
    image = base64.b64encode(b"\x89PNG\r\n--\0").decode()
    arguments = {"title": "é", "meta": {"a": 1}, "picture": image, "files": [image, image], "note": "# x"}

    request = sent("POST", "https://x.example/", arguments, body=RequestBody("multipart/form-data", fields=fields))

    boundary = request.headers["Content-Type"].partition("boundary=")[2].encode()
    parts = (request.body or b"").split(b"--" + boundary)
    assert parts[-1] == b"--\r\n"
    file = b"Content-Type: %b\r\n\r\n\x89PNG\r\n--\0"
    assert [part.strip(b"\r\n").removeprefix(b"Content-Disposition: form-data; ") for part in parts[1:-1]] == [
        'name="title"\r\n\r\né'.encode(),
        b'name="meta"\r\nContent-Type: application/json\r\n\r\n{"a":1}',
        b'name="pic%22ture"; filename="pic%22ture"\r\n' + file % b"image/png",
        b'name="files"; filename="files"\r\n' + file % b"application/octet-stream",
        b'name="files"; filename="files"\r\n' + file % b"application/octet-stream",
        b'name="note"\r\nContent-Type: text/markdown\r\n\r\n# x',
    ]


def test_text_and_bytes_are_sent_as_they_are() -> None:
    text = sent(
        "POST", "https://x.example/", {"body": "<a>é</a>"}, body=RequestBody("application/xml", argument="body")
    )
    data = sent("PUT", "https://x.example/", {"body": "AP8="}, body=RequestBody("application/zip", argument="body"))

    assert text.body == "<a>é</a>".encode()
    assert data.body == b"\0\xff"
    assert data.headers["Content-Type"] == "application/zip"


@pytest.mark.parametrize("value", ["é", "AAA~", 7, {"a": 1}, "A"])
def test_bytes_that_are_no_base64_are_refused_by_the_name_of_the_argument(value: Any) -> None:
    with pytest.raises(InvalidInput, match="`file` is not base64"):
        sent("PUT", "https://x.example/", {"file": value}, body=RequestBody("image/png", argument="file"))


@pytest.mark.req("EXEC-01")
def test_a_tool_made_by_hand_takes_its_arguments_from_the_address_and_sends_the_others() -> None:
    url = "https://x.example/users/{id}/notes?lang={lang}&fixed=1"
    arguments = {"id": "a b", "lang": "d&e", "tags": ["x", "y"], "where": {"a": 1}}

    got = sent("GET", url, arguments)
    posted = sent("post", url, arguments)

    assert got.url == (
        "https://x.example/users/a%20b/notes?lang=d%26e&fixed=1&tags=x&tags=y&where=%7B%22a%22%3A1%7D"
    )  # fmt: skip
    assert got.body is None
    assert (posted.method, posted.url) == ("POST", "https://x.example/users/a%20b/notes?lang=d%26e&fixed=1")
    assert json.loads(posted.body or b"") == {"tags": ["x", "y"], "where": {"a": 1}}


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "..",
        "../admin",
        "a/../../b",
        "..\\admin",
        "%2e%2e",
        "%2e%2e%2fadmin",
        "./a",
        "a/..",
        "\0",
        [],
        {},
        [".."],
    ],
)
@pytest.mark.parametrize("allow_reserved", [False, True])
def test_a_value_does_not_leave_its_place_in_the_path(value: Any, allow_reserved: bool) -> None:
    parameters = (RequestParameter("id", "id", "path", "simple", allow_reserved=allow_reserved),)

    with pytest.raises(InvalidInput, match=r"`id` is not valid in a path"):
        sent("GET", "https://x.example/users/{id}/notes", {"id": value}, parameters=parameters)


def test_values_do_not_make_a_way_up_together() -> None:
    parameters = (RequestParameter("x", "x", "path", "label", explode=True),)

    with pytest.raises(InvalidInput, match=r"{x} became '\.\.'"):
        sent("GET", "https://x.example/a/{x}/b", {"x": ["", ""]}, parameters=parameters)


def test_a_path_of_several_segments_is_kept_where_the_document_says_so() -> None:
    parameters = (RequestParameter("path", "path", "path", "simple", allow_reserved=True),)

    request = sent("GET", "https://x.example/files/{path}", {"path": "a/b c/d.txt?x#y"}, parameters=parameters)

    assert request.url == "https://x.example/files/a/b%20c/d.txt%3Fx%23y"


@given(st.text())
def test_whatever_a_value_is_the_host_and_the_other_segments_stay(value: str) -> None:
    parameters = (RequestParameter("id", "id", "path", "simple"), RequestParameter("q", "q", "query", explode=True))

    try:
        request = sent("GET", "https://x.example/a/{id}/z", {"id": value, "q": value}, parameters=parameters)
    except InvalidInput:
        return

    parts = urlsplit(request.url)
    assert parts.netloc == "x.example"
    assert parts.path.split("/")[:2] + parts.path.split("/")[3:] == ["", "a", "z"]
    assert parts.fragment == ""
    assert parse_qsl(parts.query, keep_blank_values=True) == [("q", value.encode(errors="replace").decode())]
    assert request.url.isascii()


def test_a_missing_part_of_the_address_is_named() -> None:
    with pytest.raises(InvalidInput, match="the argument `shade` is missing"):
        sent(
            "GET",
            "https://x.example/{c}",
            {"shade": None},
            parameters=(RequestParameter("shade", "c", "path", "simple"),),
        )


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "\x7f", "\ud800"])
def test_a_header_ends_where_it_should(value: str) -> None:
    with pytest.raises(InvalidInput, match="X-Trace cannot be sent"):
        sent("GET", "https://x.example/", {"t": value}, parameters=(RequestParameter("t", "X-Trace", "header"),))


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection", "X Y", "a:b", ""])
def test_some_headers_are_not_for_tools_to_say(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be sent"):
        sent("GET", "https://x.example/", {"t": "1"}, parameters=(RequestParameter("t", name, "header"),))


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize(
    "url",
    [
        "https://{host}.example/x", "https://x.example:{port}/", "https://u:p@x.example/", "ftp://x.example/",
        "file:///etc/passwd", "https:///x", "https://x.example:0/", "https://x.example:99999/", "https://a b/",
        "https://[::1/", "gopher://x/",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_called_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        sent("GET", url, {"host": "evil", "port": "80"})


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET /x", ""])
def test_a_method_that_no_tool_has_is_refused(method: str) -> None:
    with pytest.raises(InvalidInput, match="is not a supported method"):
        sent(method, "https://x.example/", {})


def test_a_relative_address_lies_below_that_of_the_back_end() -> None:
    backend = Backend(source="shop", base_url="https://Shop.Example/api/v1/")

    request = wire_request(rest_tool("GET", "/orders/{id}", backend=backend), {"id": 7}, {})

    assert request.url == "https://shop.example/api/v1/orders/7"
    with pytest.raises(InvalidInput, match=r"the source `shop` has no URL"):
        wire_request(rest_tool("GET", "/orders", backend=Backend(source="shop")), {}, {})


def test_names_of_other_scripts_and_spaces_in_a_document_are_encoded() -> None:
    request = sent("GET", "https://bücher.example/a b/ü", {})

    assert request.url == "https://xn--bcher-kva.example/a%20b/%C3%BC"


Kind = Literal["header", "query", "cookie", "basic", "bearer"]


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize(
    ("kind", "secret", "where"),
    [
        ("bearer", "s3cret", ("Authorization", "Bearer s3cret")),
        ("basic", "ann:pw", ("Authorization", "Basic YW5uOnB3")),
        ("header", "s3cret", ("X-Key", "s3cret")),
        ("cookie", "s3cret", ("Cookie", "X-Key=s3cret")),
    ],
)
def test_a_secret_is_shown_as_its_scheme_says(kind: Kind, secret: str, where: tuple[str, str]) -> None:
    scheme = AuthScheme("main", kind, "X-Key")
    tool = rest_tool("GET", "https://x.example/", security=((scheme,),), backend=Backend(auth={"main": "shop-key"}))

    request = wire_request(tool, {}, {"shop-key": secret})

    assert secret_names(tool) == {"shop-key"}
    assert request.headers[where[0]] == where[1]
    assert secret not in repr(request)


def test_a_secret_in_the_query_is_encoded() -> None:
    scheme = AuthScheme("main", "query", "api_key")
    tool = rest_tool("GET", "https://x.example/?a=1", security=((scheme,),), backend=Backend(auth={"main": "k"}))

    assert wire_request(tool, {}, {"k": "a&b"}).url == "https://x.example/?a=1&api_key=a%26b"


@pytest.mark.req("EXEC-04")
def test_the_first_alternative_with_all_its_secrets_is_shown() -> None:
    one, two, three = (AuthScheme(name, "header", f"X-{name}") for name in ("one", "two", "three"))
    tool = rest_tool(
        "GET",
        "https://x.example/",
        security=((), (one, two), (two, three), (three,)),
        backend=Backend(auth={"two": "s2", "three": "s3"}),
    )

    request = wire_request(tool, {}, {"s2": "a", "s3": "b"})

    assert secret_names(tool) == {"s2", "s3"}
    assert (request.headers["X-two"], request.headers["X-three"]) == ("a", "b")


def test_nobody_needs_to_be_known_where_that_is_an_alternative() -> None:
    tool = rest_tool("GET", "https://x.example/", security=((AuthScheme("a", "bearer"),), ()))

    assert secret_names(tool) == frozenset()
    assert "Authorization" not in wire_request(tool, {}, {}).headers


@pytest.mark.req("EXEC-04")
def test_a_scheme_without_a_secret_is_named_with_its_source() -> None:
    schemes = (AuthScheme("first", "bearer"), AuthScheme("second", "header", "X"))
    tool = rest_tool(
        "GET", "https://x.example/", security=(schemes,), backend=Backend(source="shop", auth={"first": "a"})
    )

    with pytest.raises(Unavailable, match=r"the security scheme `second` of the source `shop` has no secret"):
        wire_request(tool, {}, {"a": "x"})


@pytest.mark.req("EXEC-04")
def test_what_an_operator_sets_goes_over_what_a_model_says() -> None:
    tool = rest_tool(
        "GET",
        "https://x.example/",
        parameters=(RequestParameter("key", "x-key", "header"),),
        headers={"X-Key": "of the request", "X-Other": "{{secret:other}}"},
        backend=Backend(headers={"X-KEY": "Token {{ secret:shop.key }}!"}),
    )

    request = wire_request(tool, {"key": "of the model"}, {"shop.key": "s3cret", "other": "o"})

    assert secret_names(tool) == {"shop.key", "other"}
    assert [value for name, value in request.headers.items() if name.lower() == "x-key"] == ["Token s3cret!"]
    assert request.headers["X-Other"] == "o"


def test_a_header_is_sent_once_whoever_sets_it() -> None:
    tool = rest_tool("GET", "https://x.example/", headers={"accept": "text/csv", "USER-AGENT": "shop"})

    request = wire_request(tool, {}, {})

    assert request.headers == {"accept": "text/csv", "Accept-Encoding": "gzip, deflate", "USER-AGENT": "shop"}


@pytest.mark.req("EXEC-04")
def test_a_model_names_no_secret() -> None:
    tool = rest_tool("GET", "https://x.example/{a}", parameters=(RequestParameter("h", "X-H", "header"),))

    request = wire_request(tool, {"a": "{{secret:k}}", "h": "{{secret:k}}"}, {"k": "s3cret"})

    assert "s3cret" not in request.url
    assert request.headers["X-H"] == "{{secret:k}}"


@pytest.mark.parametrize(
    ("kind", "secret"), [("bearer", "a\r\nb"), ("cookie", "a;b"), ("cookie", "a\nb"), ("basic", "no colon")]
)
def test_a_secret_that_cannot_be_sent_is_told_by_its_name_alone(kind: Kind, secret: str) -> None:
    tool = rest_tool(
        "GET", "https://x.example/", security=((AuthScheme("s", kind, "X"),),), backend=Backend(auth={"s": "shop-key"})
    )

    with pytest.raises(HoldfastError, match="shop-key") as raised:
        wire_request(tool, {}, {"shop-key": secret})

    assert secret not in str(raised.value)


@pytest.mark.req("EXEC-04")
@pytest.mark.parametrize("kind", ["query", "cookie"])
def test_an_argument_does_not_say_who_calls(kind: Any) -> None:
    tool = rest_tool(
        "GET",
        "https://x.example/?the%20key=fixed&page=1",
        parameters=(RequestParameter("k", "the key", kind), RequestParameter("n", "n", kind)),
        security=((AuthScheme("s", kind, "the key"),),),
        backend=Backend(auth={"s": "shop-key"}),
    )

    request = wire_request(tool, {"k": "of the model", "n": 1}, {"shop-key": "s3cret"})

    pairs = request.url.partition("?")[2].split("&") if kind == "query" else request.headers["Cookie"].split("; ")
    assert sorted(pairs) == (["n=1", "page=1", "the%20key=s3cret"] if kind == "query" else ["n=1", "the key=s3cret"])


@pytest.mark.req("EXEC-04")
def test_a_request_does_not_show_its_secrets() -> None:
    tool = rest_tool(
        "GET",
        "https://x.example/a",
        security=((AuthScheme("s", "query", "k"),),),
        backend=Backend(auth={"s": "shop-key"}),
    )

    assert repr(wire_request(tool, {}, {"shop-key": "s3cret"})) == "WireRequest(GET https://x.example/a)"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("https://b.example/go?to=https://c.example/p&sig=1", "https://b.example/go?to=https://c.example/p&sig=1"),
        ("/y?return=https://d.example/q", "https://a.example/y?return=https://d.example/q"),
        ("https://b.example?to=https://c.example/p", "https://b.example/?to=https://c.example/p"),
    ],
)
def test_a_redirect_with_an_address_in_its_query_leads_where_it_says(location: str, url: str) -> None:
    onward = redirected_request(WireRequest("GET", "https://a.example/x", {}, None), 302, location)

    assert onward is not None
    assert onward.url == url
