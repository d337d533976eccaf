import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import PATIENCE, Watch

pytestmark = pytest.mark.req("UI-01")

MISDEEDS = {
    "console.warn('hm')": "console warning: hm",
    "console.error('oh')": "console error: oh",
    "setTimeout(() => { throw new Error('broken') })": "uncaught: broken",
    "setTimeout(() => alert('hello'))": "dialog alert: hello",
    "document.body.append(Object.assign(new Image(), { src: 'https://evil.example/x' }))": "off origin: https://evil",
    "document.body.append(Object.assign(new Image(), { src: 'data:image/gif,x' }))": "policy: img-src",
    "fetch('//evil.example/y').catch(() => {})": "policy: connect-src",
    "try { document.body.innerHTML = '<b>' } catch {}": "policy: require-trusted-types-for",
    "fetch('/api/nothing')": "404",
}


def test_whatever_a_page_does_wrong_is_seen(page: Page, page_watch: Watch) -> None:
    page.goto("/")
    expect(page.get_by_role("main")).to_be_visible()
    before = page_watch.complaints

    page.evaluate(f"() => {{ {'; '.join(MISDEEDS)} }}")

    deadline = time.monotonic() + PATIENCE / 1000
    while missed := [sign for sign in MISDEEDS.values() if not any(sign in line for line in page_watch.complaints)]:
        assert time.monotonic() < deadline, missed
        page.evaluate("() => new Promise(requestAnimationFrame)")
    assert before == []
    page_watch.allow(".")


def test_axe_sees_what_keeps_people_out(page: Page, serious: Callable[[Page], list[str]]) -> None:
    page.goto("/")
    expect(page.get_by_role("main")).to_be_visible()

    page.evaluate("() => document.querySelector('main').append(document.createElement('button'))")

    assert "button-name" in [line.partition(":")[0] for line in serious(page)]
