"""Serves agents, and is struck at one moment of a turn: `clerk.py [HOW MOMENT]`; the environment says where.

HOW: it `dies` (kill -9), `hangs` (SIGSTOP, as a machine does) or `waits` for SIGUSR1, once. Each question to the model
is a line in the file `asked` with the step, each use of a tool one in `used` with its key, both with the process.
"""

import asyncio
import functools
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import holdfast
from holdfast.agents import after_turn
from holdfast.agents.journal import Journal
from holdfast.agents.runs import AgentRun, Runs
from holdfast.bus.subscription import Subscription
from holdfast.conversations import NodeInput
from holdfast.engine import open_engine
from holdfast.llm import ModelRequest, Piece, TextPiece
from holdfast.llm.scripted import ScriptedModel, steps_since_user

Method = Callable[..., Awaitable[Any]]
Test = Callable[..., bool]
Tests = Mapping[str, Test]

stream = ScriptedModel.stream
app = holdfast.App()


def note(file: str, line: object) -> None:
    """Write a line that outlives this process."""
    with Path(file).open("a") as ledger:
        ledger.write(f"{line} {os.getpid()}\n")


class Strike:
    """What befalls this process, once."""

    def __init__(self, how: str = "", moment: str = "") -> None:
        self._how = how
        self.moment = moment
        self.go_on = asyncio.Event()

    async def fall(self) -> None:
        """Die, hang or wait, here and now."""
        how, self._how, self.moment = self._how, "", ""
        match how:
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                # It does not learn from its leases that it is late: what it writes then must be refused.
                for method in ("renew", "stop_requests"):
                    setattr(Runs, method, unaware)
                os.kill(os.getpid(), signal.SIGSTOP)
            case _:
                say("waits")
                await self.go_on.wait()

    def lurk(self, owner: Any, name: str, *, before: Tests | None = None, after: Tests | None = None) -> None:
        """Fall before or after a method, at the moment whose test its arguments pass."""
        method: Method = getattr(owner, name)

        @functools.wraps(method)
        async def struck(*args: Any, **named: Any) -> Any:
            is_now = (before or {}).get(self.moment)
            if is_now is not None and is_now(*args, **named):
                await self.fall()
            result = await method(*args, **named)
            is_now = (after or {}).get(self.moment)
            if (
                is_now is not None and is_now(*args, **named) and result != []
            ):  # where nothing was found, nothing was done
                await self.fall()
            return result

        setattr(owner, name, struck)


strike = Strike(*sys.argv[1:])
flushed = asyncio.Event()


@app.tool(idempotent=True)
async def track(parcel: str, run: holdfast.Run) -> dict[str, str]:
    """Where a parcel is."""
    return await use("track", parcel, run)


@app.tool
async def pay(bill: str, run: holdfast.Run) -> dict[str, str]:
    """Pay a bill."""
    return await use("pay", bill, run)


async def use(tool: str, what: str, run: holdfast.Run) -> dict[str, str]:
    """Use a tool, and say so."""
    note("used", f"{tool} {run.key}")
    if strike.moment == "working":
        await strike.fall()
    if strike.moment == "half" and what == "AB-2":
        await asyncio.Event().wait()  # until the other one's outcome is stored, which is the moment
    return {tool: what}


app.agent("support", instructions="You help customers of a shop.", tools=[track, pay])


async def counted(model: ScriptedModel, request: ModelRequest) -> AsyncGenerator[Piece]:
    """The answer; at the moment `streaming`, two pieces of the second one and no more."""
    step = steps_since_user(request) + 1
    note("asked", step)
    come = 0
    async for piece in stream(model, request):
        yield piece
        come += isinstance(piece, TextPiece)
        if strike.moment == "streaming" and (step, come) == (2, 2):
            for _ in range(2):  # one may be under way already
                flushed.clear()
                await flushed.wait()
            await strike.fall()


async def flush(journal: Journal, stored: Method = Journal.flush) -> None:
    """Say when what was streamed is stored."""
    await stored(journal)
    flushed.set()


async def unaware(_: Runs, held: Sequence[AgentRun], **__: object) -> dict[UUID, str | None]:
    """All is as it was."""
    return {run.id: None for run in held}


def says(*, calls: bool) -> Test:
    """Whether the agent says something: that it calls tools, or its answer."""

    def test(_: Journal, drafts: Sequence[NodeInput], **__: object) -> bool:
        draft = drafts[0] if drafts else NodeInput(content="", context="text:agent:tool")
        return str(draft.context) != "text:agent:tool" and calls == ("tool_calls" in (draft.payload or {}))

    return test


def observes(_: Journal, drafts: Sequence[NodeInput], **__: object) -> bool:
    """Whether a tool's output becomes a node; that of a single one is stored with it."""
    return bool(drafts) and str(drafts[0].context) == "text:agent:tool"


def always(*_: object, **__: object) -> bool:
    """Whenever it is called."""
    return True


def arm() -> None:
    """Lie in wait at every moment."""
    strike.lurk(Runs, "take", after={"claimed": always})
    strike.lurk(
        Journal,
        "append",
        before={"calling": says(calls=True), "worked": observes, "answering": says(calls=False)},
        after={"begun": says(calls=True), "observed": observes},
    )
    strike.lurk(Journal, "end_execution", after={"half": always})
    strike.lurk(after_turn, "remember_turn", before={"answered": always}, after={"remembered": always})
    strike.lurk(Runs, "finish", before={"ending": always}, after={"ended": always})
    strike.lurk(Subscription, "commit", before={"committing": always})
    ScriptedModel.stream = counted  # pyright: ignore[reportAttributeAccessIssue]
    Journal.flush = flush  # pyright: ignore[reportAttributeAccessIssue]


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> None:
    """Serve until SIGTERM."""
    logging.basicConfig(level="WARNING")
    arm()
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ending.set)
    loop.add_signal_handler(signal.SIGUSR1, strike.go_on.set)
    async with open_engine() as engine, engine.serving(app):
        say("serves")
        await ending.wait()
    say("ended")


if __name__ == "__main__":
    asyncio.run(main())
