"""Fair order: when many requests arrive at once, callers take turns to start.

A burst of thousands from one caller would otherwise delay the next caller until all of them have started.
"""

import asyncio

from starlette.datastructures import Headers

from holdfast.core.shares import FairQueue, Holder

PER_ROUND = 4  # requests that start in one round of the event loop


class FairStart:
    """Starts a few requests in each round of the event loop: address after address, credential after credential."""

    def __init__(self) -> None:
        self._left = PER_ROUND
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    async def wait(self, address: str, headers: Headers) -> None:
        """Return when it is this caller's turn: at once, unless others wait."""
        if self._left and not self._waiting:
            self._take()
            return
        caller: Holder = (address, headers.get("authorization") or headers.get("cookie", ""))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(caller, turn)
        try:
            await turn
        finally:
            if not turn.done() or turn.cancelled():
                self._waiting.remove(caller, turn)

    def _take(self) -> None:
        if self._left == PER_ROUND:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._left -= 1

    def _next_round(self) -> None:
        self._left = PER_ROUND
        while self._left and (found := self._waiting.pop()) is not None:
            if not found[1].done():
                self._take()
                found[1].set_result(None)
