import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from holdfast.engine import Engine
from holdfast.server.plain_pages import POLICY
from holdfast.server.routes.browser import screen_or_home
from tests.clock import Clock
from tests.server.wire import Reply, Site

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def make_link(site: Site, **headers: str) -> str:
    reply = await site.ask("POST", "/api/keys/link", key=site.file.token, json={"principal": "ann"}, headers=headers)
    return reply.json()["url"]


async def sign_in(site: Site, link: str, *, to: str | None = None, **headers: str) -> Reply:
    form = {"link": link.partition("link=")[2], **({} if to is None else {"to": to})}
    return await site.ask("POST", "/login", body=urlencode(form).encode(), headers={**FORM, **headers})


def session_of(reply: Reply) -> dict[str, str]:
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0]}


@pytest.mark.req("SAFE-03")
async def test_a_link_becomes_a_session_of_the_browser(site: Site) -> None:
    link = await make_link(site)

    signed_in = await sign_in(site, link)

    assert (signed_in.status, signed_in.headers["location"]) == (303, "/")
    assert set(signed_in.headers["set-cookie"].split("; ")[1:]) >= {"HttpOnly", "Path=/", "SameSite=strict"}
    me = await site.ask("GET", "/api/me", headers=session_of(signed_in))
    assert me.json() == {"tenant": "default", "user": "ann", "scopes": ["admin", "read", "write"], "local": False}


@pytest.mark.req("SAFE-03")
async def test_a_link_works_once(site: Site) -> None:
    link = await make_link(site)
    await sign_in(site, link)

    again = await sign_in(site, link)

    assert again.status == 401
    assert "set-cookie" not in again.headers
    assert b"already used" in again.body


@pytest.mark.req("SAFE-03")
async def test_a_link_expires(site: Site, engine: Engine, clock: Clock) -> None:
    link = await make_link(site)
    await clock.advance(timedelta(minutes=11))

    assert (await sign_in(site, link)).status == 401


@pytest.mark.req("SAFE-03")
async def test_to_fetch_a_link_does_not_use_it_up(site: Site) -> None:
    link = await make_link(site)
    path = "/" + link.partition("://")[2].partition("/")[2]

    pages = [await site.ask("GET", path) for _ in range(3)]

    value = re.search(r'name="link" value="([^"]+)"', pages[0].body.decode())
    assert value is not None
    assert link.endswith(f"link={value[1]}")
    assert pages[0].headers["content-type"].startswith("text/html")
    assert (await sign_in(site, link)).status == 303


@pytest.mark.req("SAFE-03")
async def test_a_link_is_not_a_key_nor_a_session(site: Site, key: str) -> None:
    text = (await make_link(site)).partition("link=")[2]

    as_key = await site.ask("GET", "/api/me", key=text)
    as_session = await site.ask("GET", "/api/me", headers={"Cookie": f"holdfast_session={text}"})

    assert (as_key.status, as_session.status) == (401, 401)


async def test_the_page_repeats_nothing_as_markup(site: Site) -> None:
    attack = '"><script>alert(1)</script>'

    page = await site.ask("GET", f"/login?link={quote(attack)}")

    assert b"<script" not in page.body
    assert html.escape(attack).encode() in page.body
    assert "script-src" not in page.headers["content-security-policy"]
    assert "form-action 'self'" in page.headers["content-security-policy"]


@pytest.mark.req("SAFE-03")
async def test_another_site_can_neither_sign_in_nor_use_the_session(site: Site) -> None:
    link = await make_link(site)

    foreign = await sign_in(site, link, Origin="http://evil.example")
    own = await sign_in(site, link, Origin="http://127.0.0.1")
    used = await site.ask(
        "POST", "/api/keys", json={"principal": "eve"}, headers={**session_of(own), "Origin": "http://evil.example"}
    )

    assert (foreign.status, own.status, used.status) == (403, 303, 403)


async def test_behind_tls_the_cookie_is_for_tls_alone(site: Site) -> None:
    link = await make_link(site, **{"X-Forwarded-Proto": "https"})

    signed_in = await sign_in(site, link, **{"X-Forwarded-Proto": "https"})

    assert link.startswith("https://127.0.0.1/login?")
    assert "Secure" in signed_in.headers["set-cookie"].split("; ")


async def test_signing_out_takes_the_session_from_the_browser(site: Site) -> None:
    session = session_of(await sign_in(site, await make_link(site)))

    signed_out = await site.ask("POST", "/logout", headers=session)

    assert signed_out.status == 303
    assert signed_out.headers["set-cookie"].startswith('holdfast_session=""; ')
    assert "Max-Age=0" in signed_out.headers["set-cookie"].split("; ")


@pytest.mark.req("SAFE-03")
async def test_a_session_that_was_signed_out_is_worth_nothing(site: Site, engine: Engine) -> None:
    await engine.keys.create((await engine.tenants.find("default")).id, "ann")  # without a key anyone here gets in
    session = session_of(await sign_in(site, await make_link(site)))
    before = await site.ask("GET", "/api/me", headers=session)

    await site.ask("POST", "/logout", headers=session)

    assert (before.status, (await site.ask("GET", "/api/me", headers=session)).status) == (200, 401)


@pytest.mark.req("SAFE-03", "UI-01")
async def test_of_what_was_pasted_only_the_link_itself_counts(site: Site) -> None:
    forms = [
        "{}",
        "  {}\n",
        "link={}",
        "http://127.0.0.1:4600/x/login?link={}&a=b",
        "sign in  http://h/?link={} (once)",
    ]

    statuses: list[int] = []
    for form in forms:
        text = form.format((await make_link(site)).partition("link=")[2])
        reply = await site.ask("POST", "/login", body=urlencode({"link": text}).encode(), headers=FORM)
        statuses.append(reply.status)

    assert statuses == len(forms) * [303]


@pytest.mark.req("UI-01")
async def test_whoever_signs_in_is_where_they_wanted_to_be(site: Site) -> None:
    screens = ["/chat", "/chat/desk/web-42", "/sessions/1?at=7&q=green%20tea", "/memory?q=//x"]

    replies = [await sign_in(site, await make_link(site), to=screen) for screen in screens]

    assert [reply.headers["location"] for reply in replies] == screens


@pytest.mark.req("SAFE-03", "UI-01")
@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "//evil.example",
        "//evil.example/chat",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/%2f%2fevil.example",
        "/%5cevil.example",
        "/%09/evil.example",
        "https://evil.example/chat",
        "https:evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil.example",
        "@evil.example",
        ".evil.example",
        "/chat@evil.example",
        "/chat\r\nSet-Cookie: a=b",
        "/chat\nLocation: //evil.example",
        "/chat\\..\\evil",
        "/chat/../..//evil.example",
        "/chat/%2e%2e/%2E%2e//evil.example",
        "/chat%2f..%2f..%2fevil",
        "/chats",
        "/api/me",
        "/logout",
        "/login?link=x",
        "/chat/\u2028evil",
        "/chat/" + 3000 * "a",
    ],
)
def test_what_is_no_address_of_a_screen_leads_home(wanted: str) -> None:
    assert screen_or_home(wanted) == "/"


@pytest.mark.req("SAFE-03", "UI-01")
async def test_signing_in_leads_to_no_other_site(site: Site) -> None:
    signed_in = await sign_in(site, await make_link(site), to="//evil.example")
    page = await site.ask("GET", "/login?to=//evil.example")

    assert (signed_in.status, signed_in.headers["location"]) == (303, "/")
    assert b'name="to" value="/"' in page.body


@pytest.mark.req("UI-01")
@pytest.mark.parametrize("settings", [{"root_path": "/engine/one"}])
async def test_under_a_root_path_the_screen_that_was_wanted_is_below_it(site: Site, settings: dict[str, Any]) -> None:
    wanted = await sign_in(site, await make_link(site), to="/chat/desk")
    other = await sign_in(site, await make_link(site), to="/chat/../../other")

    assert wanted.headers["location"] == "/engine/one/chat/desk"
    assert other.headers["location"] == "/engine/one/"


@pytest.mark.req("UI-01")
async def test_without_a_link_the_page_asks_for_one_and_says_how_to_get_it(site: Site) -> None:
    page = await site.ask("GET", "/login?to=/chat/desk")
    refused = await site.ask("POST", "/login", body=b"link=hf_none&to=/chat/desk", headers=FORM)

    for reply in (page, refused):
        assert b'<label for="link">' in reply.body
        assert b"holdfast keys link" in reply.body
        assert b'name="to" value="/chat/desk"' in reply.body
    assert (page.status, refused.status) == (200, 401)
    assert b'role="alert"' in refused.body


async def test_the_page_has_its_style_from_us_and_nothing_inline(site: Site) -> None:
    page = await site.ask("GET", "/login?link=hf_x")

    assert page.headers["content-security-policy"] == POLICY
    assert not re.findall(r"<script|<style|\son\w+=|\sstyle=", page.body.decode())
    styled = await site.ask("GET", re.findall(r'rel="stylesheet" href="([^"]+)"', page.body.decode())[0])
    assert (styled.status, styled.headers["content-type"]) == (200, "text/css; charset=utf-8")


@pytest.mark.parametrize(
    "body", [b"", b"link=", b"link=%ff", b"link=%00", b"link=%ED%A0%80", b"other=1", b"link=a&x=b"]
)
async def test_a_bad_form_is_refused(site: Site, body: bytes) -> None:
    reply = await site.ask("POST", "/login", body=body, headers=FORM)

    assert reply.status in (400, 401)


@pytest.mark.parametrize("settings", [{"root_path": "/engine/one"}])
@pytest.mark.parametrize("prefix", ["", "/engine/one"])
async def test_under_a_root_path_all_links_lead_there_whether_the_proxy_strips_it_or_not(
    site: Site, prefix: str, settings: dict[str, Any]
) -> None:
    me = await site.ask("GET", f"{prefix}/api/me")
    made = await site.ask("POST", f"{prefix}/api/keys/link", json={})
    page = await site.ask("GET", f"{prefix}/login")
    text = made.json()["url"].partition("link=")[2]
    signed_in = await site.ask("POST", f"{prefix}/login", body=f"link={text}".encode(), headers=FORM)
    described = await site.ask("GET", f"{prefix}/api/openapi.json")

    assert me.status == 200
    assert made.json()["path"].startswith("/engine/one/login?link=")
    assert b'action="/engine/one/login"' in page.body
    assert b'href="/engine/one/static/page.css"' in page.body
    assert signed_in.headers["location"] == "/engine/one/"
    assert "Path=/engine/one" in signed_in.headers["set-cookie"].split("; ")
    assert described.json()["servers"] == [{"url": "/engine/one"}]


@pytest.mark.parametrize("settings", [{"root_path": "/engine/one"}])
async def test_the_address_that_is_printed_leads_to_the_first_page(site: Site, settings: dict[str, Any]) -> None:
    assert (await site.ask("GET", "/engine/one")).status == 200
    assert (await site.ask("GET", "/engine/one/")).status == 200
