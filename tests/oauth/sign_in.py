"""A person at the sign-in page of Keycloak or Spring: opens an address, fills in the form, follows the way back."""

import html
import re
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urljoin, urlsplit

import aiohttp
from yarl import URL

from tests.oauth.keycloak import PASSWORD

MOST_STEPS = 6

_FORM = re.compile(r'<form[^>]*\saction="([^"]+)"', re.DOTALL)
_HIDDEN = re.compile(r'<input(?=[^>]*type="hidden")(?=[^>]*name="([^"]+)")(?=[^>]*value="([^"]*)")')


async def sign_in(url: str, user: str, *, password: str = PASSWORD) -> str:
    """Sign a user in at an authorization URL, consent if asked, and return the address that the server leads to."""
    issuer = urlsplit(url).netloc
    # Cookies of an address without a name, and secure ones without TLS: browsers keep both for this machine.
    jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False, treat_as_secure_origin=URL(url).origin())
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"Accept": "text/html"}) as session:
        response = await session.get(url, allow_redirects=False)
        for _ in range(MOST_STEPS):
            if response.status in (HTTPStatus.FOUND, HTTPStatus.SEE_OTHER):
                url = urljoin(url, response.headers["Location"])
                if urlsplit(url).netloc != issuer:
                    return url
                response = await session.get(url, allow_redirects=False)
                continue
            page = await response.text()
            form = _FORM.search(page)
            assert form is not None, re.sub(r"<(script|style).*?</\1>|<[^>]+>|\s+", " ", page, flags=re.DOTALL)
            fields = {name: html.unescape(value) for name, value in _HIDDEN.findall(page)}
            fields |= {"accept": "Yes"} if "kc-login" not in page or 'name="accept"' in page else {}
            fields |= {"username": user, "password": password} if 'name="password"' in page else {}
            url = urljoin(url, html.unescape(form[1]))
            response = await session.post(url, data=fields, allow_redirects=False)
        raise AssertionError("the sign-in did not end")


def parameters_of(url: str) -> Mapping[str, str]:
    """The parameters of an address."""
    return dict(parse_qsl(urlsplit(url).query))
