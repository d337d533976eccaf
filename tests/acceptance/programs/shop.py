"""An app for `holdfast worker shop:app`: skills that take as long as the test wants.

Each says on stdout when it starts; one that waits does so until a file is there.
"""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path

import holdfast

app = holdfast.App()
empty = holdfast.App()
answer = 42


def begin(skill: str) -> None:
    """Say that an attempt has begun."""
    sys.stdout.write(f"{skill} attempt {holdfast.current_command().attempt} in {os.getpid()}\n")
    sys.stdout.flush()


@app.skill("translate")
async def translate(text: str) -> str:
    """Done at once."""
    begin("translate")
    return text.upper()


@app.skill("report")
async def report(ready: str) -> int:
    """Takes until the file is there; the process that did it."""
    begin("report")
    while not Path(ready).exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    return os.getpid()


@app.skill("print")
def print_out(ready: str) -> int:
    """The same in a thread, which nobody can stop."""
    begin("print")
    while not Path(ready).exists():
        time.sleep(0.01)
    return os.getpid()


@app.skill("blocking")
async def blocking(seconds: float) -> int:
    """Blocks the event loop for so long, as a careless library does; the process that did it."""
    begin("blocking")
    threading.Event().wait(seconds)
    return os.getpid()
