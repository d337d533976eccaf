"""An app for `holdfast up desk.py`: the default agent, and two that follow a script (see script.py)."""

from typing import Any

from holdfast.default import default_app

app = default_app()


@app.tool(idempotent=True)
async def track(parcel: str) -> dict[str, str]:
    """Where a parcel is."""
    return {"parcel": parcel, "place": "Cologne"}


@app.tool
async def refund(parcel: str, euros: float) -> str:
    """Refund the postage."""
    return f"{euros:.2f} euros for {parcel}"


@app.tool(idempotent=True)
async def echo(value: Any) -> Any:
    """Give back what was given."""
    return value


app.agent(
    "desk",
    description="Answers at the desk.",
    instructions="You help.",
    model="scripted:script.jsonl",
    tools=[track, refund, echo],
    approve=["refund"],
)
app.agent(
    "moody",
    description="Fails, and then does not.",
    instructions="You help.",
    model="scripted:moody.jsonl",
    memory=False,
)
