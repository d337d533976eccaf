"""An app for `holdfast up gate:app`: tools that give back what they are given, at once or in steps."""

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
