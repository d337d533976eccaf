"""The gateway with all governance, and without: what is set in each, and whether it is at work, for the same calls."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import aiohttp
from measure.helpers import Helper

from parts.fronts import CUSTOMER, TOOL, rpc_call, tool_call
from parts.loading import Front, Loader, state_of
from parts.standing import AGENT, Issuer, administered

RULES = 20  # access rules that could match a call
OTHERS = 1000  # access rules of other users
LARGEST = 1_000_000  # the largest id that no rule refuses
SAMPLE = 20  # calls by which it is checked what is at work
PROBE = "probe"  # a user whose limit is reached
LIMIT_OF_PROBE = f"user {PROBE}: 1 requests per hour"

# Without governance, tokens, permissions and arguments are still checked.
UNGOVERNED: Mapping[str, str] = MappingProxyType({"HOLDFAST_AUDIT__ENABLED": "false"})
# The back end learns who calls: by headers with a token that the gateway signs.
IDENTITY: Mapping[str, str] = {"kind": "signed"}


def rules() -> str:
    """Access rules: some that could match each call, and many of other users."""
    could_match = [f'large-{n}: deny tool "{TOOL}" when id > {LARGEST + n}' for n in range(RULES - 1)]
    others = [f'other-{n}: deny user "user-{n}" tool "{TOOL}"' for n in range(OTHERS)]
    return "\n".join([*could_match, f'nights: deny agent "{AGENT}" tool "refund*" between 22:00 and 06:00', *others])


def limits() -> Sequence[str]:
    """Limits that hold for each call, and that are never reached."""
    return (
        "tenant: 100000 requests per second",
        "each user: 100000 requests per second",
        f"agent {AGENT}: 100000 requests per second",
        f"each user of tool {TOOL}: 100000 requests per second",
        f"tool {TOOL}: 1000 concurrent calls",
    )


def governance() -> Sequence[tuple[str, str, object]]:
    """The requests that set them."""
    return [
        ("PUT", "/api/gateway/rules", {"text": rules()}),
        *(("PUT", "/api/limits", {"rule": limit}) for limit in limits()),
    ]


async def check(front: Front, issuer: Issuer, shop: Helper, load: Loader, *, governed: bool) -> None:
    """Make some calls, and see that all governance is at work in them, or none.

    That is: an entry in the audit for each, a back end that learns who calls, a rule and a limit that refuse.
    """
    admin = administered(front, issuer).token
    async with aiohttp.ClientSession(f"http://127.0.0.1:{front.port}") as session:

        async def ask(method: str, path: str, body: object = None, *, token: str | None = admin) -> Any:
            async with session.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"}) as answer:
                assert answer.ok, await answer.text()
                return await answer.json() if answer.status == HTTPStatus.OK else None

        async def refusal(id: int = CUSTOMER, *, token: str | None = front.token) -> str:
            call = {"jsonrpc": "2.0", "id": 1, "method": TOOL, "params": {"id": id}}
            answer = await ask("POST", "/rpc", call, token=token)
            return answer["error"]["data"]["description"] if "error" in answer else ""

        async def counts() -> tuple[int, int, int]:
            entries = await ask("GET", "/api/audit?action=tool.call&outcome=done&limit=200")
            counted = await state_of(shop)
            return len(entries["entries"]), counted["identified"], counted["requests"]

        before = await counts()
        for call in (tool_call(front), rpc_call(front)):
            turn = await load.put(call, clients=SAMPLE // 2, seconds=0)
            assert not turn.wrong, turn.said
        added = tuple(now - then for now, then in zip(await counts(), before, strict=True))
        assert added == (SAMPLE * governed, SAMPLE * governed, SAMPLE), added
        assert ("the access rule large-0 denies it" in (why := await refusal(LARGEST + 1))) == governed, why
        written, found = await ask("GET", "/api/gateway/rules"), await ask("GET", "/api/limits")
        assert written["text"] == (rules() if governed else ""), written
        assert {each["rule"] for each in found["limits"]} == set(limits() if governed else ()), found
        if governed:
            await ask("PUT", "/api/limits", {"rule": LIMIT_OF_PROBE})
            token = issuer.token(sub=PROBE, agent=AGENT, scope="holdfast:read holdfast:write")
            first, second = [await refusal(token=token) for _ in range(2)]
            assert not first, first
            assert PROBE in second, second
            await ask("DELETE", f"/api/limits?name={quote(LIMIT_OF_PROBE)}")
