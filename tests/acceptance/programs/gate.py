"""An app for `holdfast up gate:app`: tools that give back what they are given, at once or in steps."""

import asyncio
from pathlib import Path

import holdfast

app = holdfast.App("gate")


@app.tool(idempotent=True)
async def mirror(text: str) -> str:
    """Give it back."""
    return text


@app.tool(idempotent=True)
async def spell(text: str, run: holdfast.Run) -> str:
    """Give it back letter by letter, and then whole."""
    for number, letter in enumerate(text):
        await run.client.progress(number, message=letter)
    return text


@app.tool
async def charge(bill: str, ready: str) -> str:
    """Charge a bill when a file is there; it must not run twice."""
    print(f"charging {bill}", flush=True)  # noqa: T201 - the test waits for it
    while not Path(ready).exists():  # noqa: ASYNC110 - a test in another process makes it
        await asyncio.sleep(0.05)
    return f"charged {bill}"
