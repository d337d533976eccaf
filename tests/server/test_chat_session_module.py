"""The browser's module, as it is served, under Node and against a real server."""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import Engine
from tests.server.conftest import make_key
from tests.server.wire import Site

pytestmark = pytest.mark.req("STM-04")

DRIVER = Path(__file__).with_name("chat_session.mjs")
ITEM = "chatSession_ann_support"
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

# by the stored and the active session: the session to continue; whether to forget, store and activate it
FIELDS = ["sessionId", "forgetStored", "storeLocally", "activate"]
RESOLUTIONS = {
    (None, None): ("new", False, True, True),
    (None, "a"): ("a", False, True, False),
    ("a", "a"): ("a", False, False, False),
    ("a", "b"): ("b", True, True, False),
    ("a", None): ("new", True, True, True),
    ("", None): ("new", True, True, True),
    ("", "a"): ("a", True, True, False),
    ("A", "a"): ("a", True, True, False),
}


@dataclass(frozen=True, slots=True)
class Device:
    """A browser, with what its storage holds (None: it has none), what that refuses, and whether the page gave it."""

    storage: dict[str, str] | None = field(default_factory=dict[str, str])
    refuses: Sequence[str] = ()
    given: bool = False
    agent: str = "support"


@dataclass(frozen=True, slots=True)
class Started:
    """What a browser has after it started: a session or an error."""

    session_id: str | None
    storage: dict[str, str] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Node:
    """Runs the module for ann."""

    program: str
    site: Site
    key: str

    async def start(self, *devices: Device, base: str | None = None) -> list[Started]:
        """Let these devices start at once: each has heard which session is active before one goes on."""
        wanted = [
            {
                "storage": each.storage,
                "refuses": each.refuses,
                "given": each.given,
                "userId": "ann",
                "agentName": each.agent,
            }
            for each in devices
        ]
        told = await self.run(devices=wanted, base=self.root if base is None else base)
        return [Started(each["sessionId"], each["storage"], each["error"]) for each in told["started"]]

    async def run(self, **wanted: Any) -> Any:
        """What the driver tells."""
        given: dict[str, Any] = {"resolutions": [], "ids": 0, "devices": []}
        given |= {"base": self.root, "root": self.root, "key": self.key, **wanted}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(self.program, DRIVER, stdin=pipe, stdout=pipe, stderr=pipe)
        async with asyncio.timeout(30):
            told, complaints = await process.communicate(json.dumps(given).encode())
        assert process.returncode == 0, complaints.decode()
        return json.loads(told)

    @property
    def root(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self.site.port}"


@pytest.fixture
def node(site: Site, key: str) -> Node:
    """Node.js; where tests count, it must be there."""
    program = shutil.which("node")
    if program is None:
        missing = "Node.js is missing: the browser's module is NOT tested; install `node`, version 18 or later"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return Node(program, site, key)


async def active(engine: Engine, agent: str = "support") -> str | None:
    found = await engine.sessions.active(user="ann", agent=agent)
    return found and found.session_id


async def test_the_first_device_makes_a_session_and_stores_it_in_both_places(node: Node, engine: Engine) -> None:
    (first,) = await node.start(Device())

    assert first.session_id is not None
    assert UUID4.fullmatch(first.session_id)
    assert first.storage == {ITEM: first.session_id}
    assert await active(engine) == first.session_id


async def test_a_page_may_bring_its_own_storage(node: Node) -> None:
    (first,) = await node.start(Device(given=True))

    assert first.storage == {ITEM: first.session_id}


async def test_a_reload_goes_on_with_the_same_session(node: Node) -> None:
    (first,) = await node.start(Device())
    (again,) = await node.start(Device(first.storage))

    assert again == first


async def test_a_new_browser_and_a_second_device_go_on_with_the_session_of_the_first(node: Node) -> None:
    (first,) = await node.start(Device())
    (second,) = await node.start(Device({"chatSession_bob_support": "bobs", "other": "1"}))

    assert second.session_id == first.session_id
    assert second.storage == {"chatSession_bob_support": "bobs", "other": "1", ITEM: first.session_id}


async def test_devices_that_start_at_once_agree_on_one_session(node: Node, engine: Engine) -> None:
    started = await node.start(*(Device() for _ in range(8)))

    assert {each.session_id for each in started} == {await active(engine)}
    assert all(each.storage == {ITEM: each.session_id} for each in started)


async def test_a_stored_session_that_is_not_active_any_more_gives_way(node: Node, engine: Engine) -> None:
    await engine.sessions.activate(user="ann", agent="support", session_id="newer")
    (follows,) = await node.start(Device({ITEM: "older"}))
    await engine.sessions.end("newer")
    (anew,) = await node.start(Device(follows.storage))

    assert (follows.session_id, follows.storage) == ("newer", {ITEM: "newer"})
    assert anew.session_id is not None
    assert UUID4.fullmatch(anew.session_id)
    assert anew.storage == {ITEM: anew.session_id}
    assert await active(engine) == anew.session_id


async def test_each_agent_has_a_session_of_its_own(node: Node, engine: Engine) -> None:
    name = "größer & mehr?/#"

    one, other = await node.start(Device(), Device(agent=name))

    assert one.session_id != other.session_id
    assert other.storage == {f"chatSession_ann_{name}": other.session_id}
    assert (await active(engine), await active(engine, name)) == (one.session_id, other.session_id)


@pytest.mark.parametrize(
    "device",
    [
        Device(None),
        Device(None, given=True),
        Device(refuses=["localStorage"]),
        Device(refuses=["getItem", "setItem", "removeItem"]),
        Device({ITEM: "older"}, refuses=["removeItem"]),
    ],
    ids=["none", "none given", "may not be looked at", "refuses everything", "cannot forget"],
)
async def test_a_browser_that_may_not_store_anything_finds_its_session_all_the_same(
    node: Node, engine: Engine, device: Device
) -> None:
    (first,) = await node.start(device)
    (again,) = await node.start(device)

    assert first.error is None
    assert first.session_id == again.session_id == await active(engine)


async def test_a_full_storage_still_forgets_a_session_that_is_not_active(node: Node) -> None:
    (started,) = await node.start(Device({ITEM: "older"}, refuses=["setItem"]))

    assert started.error is None
    assert started.storage == {}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/nowhere", "there is nothing at this address"),
        ("/static/chat-session.js?", "is no JSON"),
        ("/healthz?", "the server's answer has no session_id"),
    ],
)
async def test_an_answer_that_is_none_is_a_clear_error_and_changes_nothing(
    node: Node, engine: Engine, path: str, why: str
) -> None:
    (started,) = await node.start(Device({ITEM: "older"}), base=node.root + path)

    assert started.error is not None
    assert started.error.startswith("Error: could not look up the active session: ")
    assert why in started.error
    assert started.storage == {ITEM: "older"}
    assert await active(engine) is None


async def test_a_server_that_cannot_be_reached_is_a_clear_error_and_changes_nothing(node: Node) -> None:
    (started,) = await node.start(Device({ITEM: "older"}), base="http://127.0.0.1:1")

    assert started.error == "Error: could not look up the active session: the server cannot be reached"
    assert started.storage == {ITEM: "older"}


async def test_a_session_that_cannot_be_made_the_active_one_is_not_stored(
    node: Node, site: Site, engine: Engine
) -> None:
    reader = await make_key(engine, scopes=["read"])

    (started,) = await Node(node.program, site, reader).start(Device({ITEM: "older"}))

    assert started.error is not None
    assert "the scope 'write' is required" in started.error
    assert started.storage == {ITEM: "older"}


async def test_new_ids_are_random_uuids_on_pages_without_tls_too(node: Node) -> None:
    told = await node.run(ids=1000)

    made = [*told["made"], *told["madeInsecurely"]]
    assert len(set(made)) == 2000
    assert all(UUID4.fullmatch(id) for id in made)


async def test_the_stored_session_goes_first_if_it_is_active_then_the_active_one_then_a_new_one(node: Node) -> None:
    told = await node.run(resolutions=list(RESOLUTIONS))

    assert [list(each) for each in told["resolved"]] == [FIELDS] * len(RESOLUTIONS)
    assert [tuple(each.values()) for each in told["resolved"]] == list(RESOLUTIONS.values())
